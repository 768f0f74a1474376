"""A network between a client and the server that can be cut off or go silent."""

import contextlib
import socket
import struct
import threading
from types import TracebackType

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 seconds: closing sends RST
_ESTABLISHED = 1  # of TCP_INFO, whose first byte is the state
_CHUNK_BYTES = 65536


class Proxy:
    """Passes on the bytes of every connection to an address, both ways, until it is told otherwise."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._passing = threading.Event()
        self._passing.set()
        self._cut = threading.Event()
        self._pairing = threading.Lock()  # from before a connection to the target until its pair is known
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def freeze(self) -> None:
        """Pass on nothing any more; all connections stay open."""
        self._passing.clear()

    def go_on(self) -> None:
        """Pass on again, what has waited too."""
        self._passing.set()

    def reset(self) -> int:
        """Cut all connections off with RST, on both sides; gives their number."""
        self._cut.set()  # whoever is woken must not end a connection in the orderly way
        with self._pairing:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for side in pair:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                with contextlib.suppress(OSError):
                    side.shutdown(socket.SHUT_RD)  # wakes the thread that reads; sends nothing
                side.close()
        return len(pairs)

    def established(self) -> int:
        """Connections that the server has not ended."""
        with self._pairing:
            return sum(
                server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED
                for _, server in self._pairs
            )

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._accepting.join()
        self._listener.close()
        self._passing.set()
        self.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._pairing:
                server = socket.create_connection(self._target)
                self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=[source, sink], daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                self._passing.wait()
                sink.sendall(data)
            if not self._cut.is_set():
                sink.shutdown(socket.SHUT_WR)
