"""A stub of the service over the HTTP port. Calls and errors are as those of gRPC, so that a fault can use either."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

import grpc
from google.protobuf import any_pb2, json_format
from google.rpc import status_pb2

from dragoman.v1 import translation_pb2 as pb

_DATA = b"data: "
_GRACE_S = 1.0  # in which the server itself says that the deadline has passed


class HttpError(grpc.RpcError):
    """Why a call failed, with the methods that gRPC's errors have."""

    def __init__(self, code: grpc.StatusCode, message: str, status: status_pb2.Status | None = None) -> None:
        super().__init__(message)
        self._code, self._message = code, message
        self._status = status or status_pb2.Status()

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._message

    def trailing_metadata(self) -> list[tuple[str, bytes]]:
        return [("grpc-status-details-bin", self._status.SerializeToString())]


class HttpStub:
    """The methods that the suite calls; each call has a connection of its own while it runs.

    Attributes:
        TranslateText: as of a TranslationStub, `future` too.
        StreamTranslateText: as of a TranslationStub.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._free: list[HTTPConnection] = []
        self._all: list[HTTPConnection] = []
        self.TranslateText = _Unary(self.send)
        self.StreamTranslateText = lambda request, timeout: self.send("/v1/translate:stream", request, timeout)

    def send(self, path: str, request: pb.TranslateTextRequest, timeout: float) -> "HttpCall":
        """Send a request; how that ends is told by the call."""
        connection = self._free.pop() if self._free else HTTPConnection(self._address)
        self._all.append(connection)
        return HttpCall(connection, path, request, timeout, self._free.append)

    def close(self) -> None:
        """End all connections."""
        for connection in self._all:
            connection.close()


class _Unary:
    def __init__(self, send: Callable[[str, pb.TranslateTextRequest, float], "HttpCall"]) -> None:
        self._send = send

    def __call__(self, request: pb.TranslateTextRequest, timeout: float) -> pb.TranslateTextResponse:
        return self.future(request, timeout).result()

    def future(self, request: pb.TranslateTextRequest, timeout: float) -> "HttpCall":
        return self._send("/v1/translate", request, timeout)


class HttpCall:
    """One call, whose request was sent: an answer, or an iterator over the pieces of a stream.

    Args:
        connection: which no other call uses.
        path: of the method.
        request: what is asked.
        timeout_s: the deadline, of which the server is told.
        on_complete: is given the connection once it can be used again.
    """

    def __init__(
        self,
        connection: HTTPConnection,
        path: str,
        request: pb.TranslateTextRequest,
        timeout_s: float,
        on_complete: Callable[[HTTPConnection], None],
    ) -> None:
        self._connection, self._on_complete = connection, on_complete
        self._num_texts = len(request.contents)
        self._cancelled = False
        self._failure: Exception | None = None
        headers = {"content-type": "application/json", "connect-timeout-ms": str(int(timeout_s * 1e3))}
        try:
            connection.timeout = timeout_s + _GRACE_S
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout_s + _GRACE_S)
            connection.request("POST", path, json_format.MessageToJson(request, indent=None).encode(), headers)
        except (OSError, HTTPException) as error:  # gRPC, too, tells it where the answer is asked for
            self._failure = error
        self._socket = connection.sock

    def cancel(self) -> None:
        """Leave: the answer is not wanted any more."""
        self._cancelled = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def result(self) -> pb.TranslateTextResponse:
        """Wait for the answer.

        Raises:
            HttpError: there is none.
        """
        with self._failures():
            response = self._response()
            body = response.read()
            self._complete(response)
        return json_format.Parse(body, pb.TranslateTextResponse())

    def __iter__(self) -> Iterator[pb.StreamTranslateTextResponse]:
        """Wait for the pieces.

        Raises:
            HttpError: the call failed, before all of them had come.
        """
        results = 0
        with self._failures():
            response = self._response()
            while line := response.readline():
                if line.startswith(b"event: error"):
                    raise _error_of(response.readline().removeprefix(_DATA))
                if line.startswith(_DATA):
                    piece = json_format.Parse(line.removeprefix(_DATA), pb.StreamTranslateTextResponse())
                    results += piece.HasField("result")
                    yield piece
            if results < self._num_texts:
                raise HTTPException(f"{results} of {self._num_texts} results")
            self._complete(response)

    def _response(self) -> HTTPResponse:
        if self._failure:
            raise self._failure
        response = self._connection.getresponse()
        if response.status != 200:
            error = _error_of(response.read())
            self._complete(response)
            raise error
        return response

    def _complete(self, response: HTTPResponse) -> None:
        if not response.will_close:
            self._on_complete(self._connection)

    def _failures(self) -> "_Failures":
        return _Failures(lambda: self._cancelled, self._connection)


class _Failures:
    """Makes a HttpError of what goes wrong in the block, and ends the connection."""

    def __init__(self, is_cancelled: Callable[[], bool], connection: HTTPConnection) -> None:
        self._is_cancelled = is_cancelled
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        if self._is_cancelled():
            self._connection.close()
            raise HttpError(grpc.StatusCode.CANCELLED, "cancelled") from error
        if not isinstance(error, OSError | HTTPException | ValueError):
            return
        self._connection.close()
        late = isinstance(error, TimeoutError)
        code = grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.UNAVAILABLE
        raise HttpError(code, f"{type(error).__name__}: {error}") from error


def _error_of(body: bytes) -> HttpError:
    """Read the JSON that AIP-193 has for errors; anything else is no clear error, and UNKNOWN."""
    try:
        error = json.loads(body)["error"]
        details = [json_format.ParseDict(detail, any_pb2.Any()) for detail in error.get("details", [])]
        return HttpError(grpc.StatusCode[error["status"]], error["message"], status_pb2.Status(details=details))
    except (ValueError, TypeError, KeyError, json_format.ParseError):
        return HttpError(grpc.StatusCode.UNKNOWN, body[:200].decode(errors="replace"))
