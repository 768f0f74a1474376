"""A second client on one machine: what connects here reaches the server from another loopback address."""

import contextlib
import socket
import threading


class Relay:
    """Passes bytes on, both ways, from any number of connections; Linux answers on all of 127.0.0.0/8.

    Attributes:
        connections: how many there have been.
    """

    def __init__(self, address: str, source_host: str) -> None:
        host, _, port = address.rpartition(":")
        self._server = host, int(port)
        self._source = source_host, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._server, source_address=self._source)
                self.connections += 1
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
