"""The methods of a service on gRPC: each call becomes a call of a handler, and each end of a call a status.

A call without a valid API key ends at its headers: no byte of its messages is read, kept or parsed.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, Self

import grpc.aio
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from dragoman.errors import DeadlineExceededError, DragomanError, InvalidRequestError, to_status
from service.handlers.context import CallContext, tell_nobody
from service.handlers.delivery import deliver
from service.handlers.translation import TranslationHandlers
from service.rpc.answers import Answers
from service.security.connection_limits import ARRIVAL_TIMEOUT_S
from service.wire import CallProtocol

Handle = Callable[[Any, CallContext], Any]


class Methods:
    """Makes methods for servers of `grpc.aio`.

    A method identifies its caller first of all. A method reads its messages itself: gRPC does not tell when there is no
    message, or when a message is slow.
    """

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int, protocol: CallProtocol) -> None:
        self._handlers = handlers
        self._max_request_bytes = max_request_bytes
        self._protocol = protocol

    def make(self, name: str, handle: Handle, request: Any, answer: Any, *, many: bool = False) -> Any:
        """Make a method, of one answer, or of many where `handle` yields them.

        Args:
            name: name of the method, by which its calls are counted.
            handle: takes the message of a call, or all of its messages together.
            request: the class of its messages.
            answer: the class of its answers.
            many: whether a call has any number of messages.
        """
        yields = inspect.isasyncgenfunction(handle)

        async def serve(_: Any, context: Any) -> Any:
            try:
                metadata = context.invocation_metadata() or ()
                caller = self._handlers.identify(name, context.peer(), metadata, self._protocol)
                message = Messages(context) if many else await arrived(context)
                answers = Answers(context) if yields else None
                remaining_s = context.time_remaining()
                call = CallContext(
                    caller,
                    deadline_s=None if remaining_s is None else time.monotonic() + remaining_s,
                    metadata=metadata,
                    accept=answers.begin if answers else tell_nobody,
                    protocol=self._protocol,
                )
                if isinstance(message, DragomanError):
                    self._handlers.refuse(name, call, message)
                if not answers:
                    return await handle(message, call)
                await deliver(handle(message, call), answers.send)
            except DragomanError as error:
                status = rpc_status.to_status(to_status(error, error.request_id))
                await context.abort(status.code, status.details, status.trailing_metadata)

        kind = grpc.stream_stream_rpc_method_handler if yields else grpc.stream_unary_rpc_method_handler
        return kind(serve, parser(request.FromString, self._max_request_bytes), answer.SerializeToString)


def parser(parse: Callable[[bytes], Any], max_bytes: int) -> Callable[[bytes], Any]:
    """Make a deserializer that gives an error in place of an invalid message, where gRPC would answer UNKNOWN."""

    def parse_or_explain(message: bytes) -> Any:
        if len(message) > max_bytes:
            return InvalidRequestError(
                f"a message must be at most {max_bytes} bytes, is {len(message)}",
                metadata={"request_bytes": str(len(message)), "max_request_bytes": str(max_bytes)},
            )
        try:
            return parse(message)
        except DecodeError:
            return InvalidRequestError("the message is not a valid request: broken protobuf, or text that is not UTF-8")

    return parse_or_explain


async def arrived(context: Any) -> Any:
    """Wait for the one message of a call; gives the result of the deserializer, or an error in its place."""
    try:
        async with asyncio.timeout(ARRIVAL_TIMEOUT_S):
            request = await context.read()
    except TimeoutError:
        return DeadlineExceededError(f"no complete message within {ARRIVAL_TIMEOUT_S:g} s of the start of the call")
    return InvalidRequestError("the call ended without a message") if request is grpc.aio.EOF else request


class Messages:
    """The messages of a call that has many, each read when it is asked for; raises an error in place of a message."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._context.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(message, DragomanError):
            raise message
        return message
