"""HTTP/2 by hand: frames and headers that no client of gRPC would send, over a socket, and what comes back."""

import socket
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple, Self

from hpack import Decoder, Encoder, HPACKError
from hyperframe.frame import DataFrame, Frame, HeadersFrame, RstStreamFrame, SettingsFrame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CALL_HEADERS = {
    b":method": b"POST",
    b":scheme": b"http",
    b":path": b"/dragoman.v1.Translation/ListModels",
    b":authority": b"dragoman",
    b"content-type": b"application/grpc",
    b"te": b"trailers",
}
NO_MESSAGE = bytes(5)  # an empty message, not compressed

Headers = Iterable[tuple[bytes, bytes]]


class End(NamedTuple):
    """How a stream ended.

    Attributes:
        status: its grpc-status, or its :status where that is not 200; "" where there was none.
        reset: the error code of the RST_STREAM that ended it; None where none did.
        closed: whether the connection was closed.
    """

    status: str
    reset: int | None
    closed: bool


def call_headers(**changes: bytes | None) -> list[tuple[bytes, bytes]]:
    """The headers of a call of ListModels; `path=b"/x"` gives another `:path`, None leaves it out."""
    headers = dict(CALL_HEADERS)
    for name, value in changes.items():
        key = name.encode() if name == "te" else f":{name}".encode()
        if value is None:
            del headers[key]
        else:
            headers[key] = value
    return list(headers.items())


class Connection:
    """One connection to a server, with the preface and an empty SETTINGS sent.

    Args:
        address: host:port.
        timeout_s: of each reading and writing.
        source: the address that it comes from; "" lets the system choose.
    """

    def __init__(self, address: str, timeout_s: float, source: str = "") -> None:
        host, _, port = address.rpartition(":")
        place = (source, 0) if source else None
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s, source_address=place)
        self._encoder, self._decoder = Encoder(), Decoder()
        self._unread = b""
        self.send(PREFACE + SettingsFrame(0).serialize())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends bytes.

        Raises:
            OSError: the server takes none any more.
        """
        self.socket.sendall(data)

    def block(self, headers: Headers) -> bytes:
        """Headers as HPACK writes them, for this connection."""
        return bytes(self._encoder.encode(headers, huffman=False))

    def begin(self, stream: int, headers: Headers, *, ends: bool = False) -> None:
        """Sends HEADERS."""
        frame = HeadersFrame(stream, self.block(headers), flags=["END_HEADERS"] + ["END_STREAM"] * ends)
        self.send(frame.serialize())

    def message(self, stream: int, content: bytes = NO_MESSAGE) -> None:
        """Sends DATA that ends the stream."""
        self.send(DataFrame(stream, content, flags=["END_STREAM"]).serialize())

    def end_of(self, stream: int) -> End:
        """Reads until a stream has ended, or the connection.

        Raises:
            TimeoutError: neither comes.
        """
        status = ""
        while (frame := self.read()) is not None:
            if isinstance(frame, HeadersFrame):
                try:
                    fields = {bytes(name): bytes(value) for name, value in self._decoder.decode(frame.data, raw=True)}
                except HPACKError:
                    continue
                if frame.stream_id != stream:
                    continue
                code = fields.get(b":status", b"200").decode()
                status = fields.get(b"grpc-status", b"").decode() or (code if code != "200" else status)
            if frame.stream_id == stream:
                if isinstance(frame, RstStreamFrame):
                    return End(status, frame.error_code, closed=False)
                if "END_STREAM" in frame.flags:
                    return End(status, None, closed=False)
        return End(status, None, closed=True)

    def read(self) -> Frame | None:
        """Reads a frame; None at the end of the connection."""
        head = self._take(9)
        if head is None:
            return None
        frame, length = Frame.parse_frame_header(memoryview(head))
        body = self._take(length)
        if body is None:
            return None
        frame.parse_body(memoryview(body))
        return frame

    def _take(self, length: int) -> bytes | None:
        while len(self._unread) < length:
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                return None
            if not data:
                return None
            self._unread += data
        taken, self._unread = self._unread[:length], self._unread[length:]
        return taken
