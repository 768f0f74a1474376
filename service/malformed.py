"""Bytes that are no request: INVALID_ARGUMENT with a reason, where gRPC would answer UNKNOWN."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc.aio
from google.protobuf.message import DecodeError

from dragoman.errors import InvalidRequestError

_T = TypeVar("_T")


class MalformedRequests(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Hands the handlers of one service None in place of a request that cannot be parsed; see :func:`parsed`."""

    def __init__(self, service: str) -> None:
        self._prefix = f"/{service}/"

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        """Wrap the parser of the method that is called, if it is one of the service."""
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(self._prefix):
            return handler
        return handler._replace(request_deserializer=_lenient(handler.request_deserializer))


def parsed(request: _T | None) -> _T:
    """Give the request.

    Raises:
        InvalidRequestError: it could not be parsed.
    """
    if request is None:
        raise InvalidRequestError("the message is not a valid request: broken protobuf, or text that is not UTF-8")
    return request


def _lenient(parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def parse_or_none(message: bytes) -> Any:
        try:
            return parse(message)
        except DecodeError:
            return None

    return parse_or_none
