"""What is no request: too many bytes, broken ones, none, or such as never come; each gets a status and a reason."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import grpc.aio
from google.protobuf.message import DecodeError

from dragoman.errors import DeadlineExceededError, DragomanError, InvalidRequestError

# 8 MiB over a line of 1 Mbit/s. A message that never ends would keep what there is of it in memory for ever.
ARRIVAL_TIMEOUT_S: Final = 60.0

_T = TypeVar("_T")


class RequestParsing(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Hands the handlers of one service the error in place of a request that is none; see :func:`parsed`.

    gRPC itself would answer UNKNOWN to broken bytes, and a call that ends without a message would get no answer at all.
    """

    def __init__(self, service: str, max_request_bytes: int) -> None:
        self._prefix = f"/{service}/"
        self._max_request_bytes = max_request_bytes
        self._wrapped: dict[
            str, tuple[Any, Any]
        ] = {}  # by method, what was wrapped and what it became: once, not a call

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        """Wrap the handler of the method that is called, if it is one of the service."""
        handler = await continuation(handler_call_details)
        if handler is None or not handler_call_details.method.startswith(self._prefix):
            return handler
        given, wrapped = self._wrapped.get(handler_call_details.method, (None, None))
        if given is not handler:
            wrapped = handler._replace(request_deserializer=self._lenient(handler.request_deserializer))
            wrapped = wrapped if handler.request_streaming else _reading(wrapped)
            self._wrapped[handler_call_details.method] = handler, wrapped
        return wrapped

    def _lenient(self, parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        limit = self._max_request_bytes

        def parse_or_explain(message: bytes) -> Any:
            if len(message) > limit:
                return InvalidRequestError(
                    f"a message must be at most {limit} bytes, is {len(message)}",
                    metadata={"request_bytes": str(len(message)), "max_request_bytes": str(limit)},
                )
            try:
                return parse(message)
            except DecodeError:
                return InvalidRequestError(
                    "the message is not a valid request: broken protobuf, or text that is not UTF-8"
                )

        return parse_or_explain


def parsed(request: _T | DragomanError) -> _T:
    """Give the request.

    Raises:
        InvalidRequestError: there is none, or it is too large or could not be parsed.
        DeadlineExceededError: it did not arrive.
    """
    if isinstance(request, DragomanError):
        raise request
    return request


def _reading(handler: Any) -> Any:
    """Make a handler that reads its one message itself: gRPC does not say when there is none, or when it is slow."""
    answer = handler.unary_stream if handler.response_streaming else handler.unary_unary

    async def read_and_answer(_: Any, context: Any) -> Any:
        return await answer(await arrived(context), context)

    make = grpc.stream_stream_rpc_method_handler if handler.response_streaming else grpc.stream_unary_rpc_method_handler
    return make(read_and_answer, handler.request_deserializer, handler.response_serializer)


async def arrived(context: Any) -> Any:
    """Wait for the one message of a call: what the deserializer made of it, or the error in its place."""
    try:
        async with asyncio.timeout(ARRIVAL_TIMEOUT_S):
            request = await context.read()
    except TimeoutError:
        return DeadlineExceededError(f"no complete message within {ARRIVAL_TIMEOUT_S:g} s of the start of the call")
    return InvalidRequestError("the call ended without a message") if request is grpc.aio.EOF else request
