"""The methods of a service on gRPC: each call becomes a call of a handler, and each of its ends a status.

A call without a valid API key ends at its headers: no byte of its messages is read, kept or parsed.
"""

import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio
from grpc_status import rpc_status

from dragoman.errors import DragomanError, to_status
from service.handlers.context import CallContext, tell_nobody
from service.handlers.delivery import deliver
from service.handlers.translation import TranslationHandlers
from service.rpc.answers import Answers
from service.rpc.request_parsing import Messages, arrived, parser
from service.security.callers import Caller, Metadata
from service.wire import Protocol

Handle = Callable[[Any, CallContext], Any]


class Methods:
    """Makes methods for servers of `grpc.aio`.

    A method identifies its caller first of all. It reads its messages itself: gRPC does not say when there is none, or
    when it is slow.

    Args:
        handlers: of the calls.
        max_request_bytes: of one message.
        protocol: of these methods.
    """

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int, protocol: Protocol) -> None:
        self._handlers = handlers
        self._max_request_bytes = max_request_bytes
        self._protocol = protocol

    def one(self, name: str, handle: Handle, request: Any, answer: Any) -> Any:
        """Make a method of one message, and of one answer, or of many where `handle` yields them.

        Args:
            name: under which its calls are counted.
            handle: takes the message of a call.
            request: the class of its messages.
            answer: the class of its answers.
        """
        yields = inspect.isasyncgenfunction(handle)

        async def serve(_: Any, context: Any) -> Any:
            try:
                metadata = context.invocation_metadata() or ()
                caller = self._handlers.identify(name, context.peer(), metadata, self._protocol)
                message = await arrived(context)
                call = self._begun(context, caller, metadata)
                if isinstance(message, DragomanError):
                    self._handlers.refuse(name, call, message)
                if not yields:
                    return await handle(message, call)
                await deliver(handle(message, call), Answers(context).send)
            except DragomanError as error:
                await _abort(context, error)

        kind = grpc.stream_stream_rpc_method_handler if yields else grpc.stream_unary_rpc_method_handler
        return self._method(kind, serve, request, answer)

    def many(self, name: str, handle: Handle, request: Any, answer: Any) -> Any:
        """Make a method of many messages, which `handle` takes together, and of many answers; as :meth:`one`."""

        async def serve(_: Any, context: Any) -> None:
            try:
                metadata = context.invocation_metadata() or ()
                caller = self._handlers.identify(name, context.peer(), metadata, self._protocol)
                answers = Answers(context)
                call = self._begun(context, caller, metadata, answers.begin)
                await deliver(handle(Messages(context), call), answers.send)
            except DragomanError as error:
                await _abort(context, error)

        return self._method(grpc.stream_stream_rpc_method_handler, serve, request, answer)

    def _method(self, kind: Any, serve: Callable[[Any, Any], Awaitable[Any]], request: Any, answer: Any) -> Any:
        return kind(serve, parser(request.FromString, self._max_request_bytes), answer.SerializeToString)

    def _begun(
        self,
        context: Any,
        caller: Caller,
        metadata: Metadata,
        accept: Callable[[], Awaitable[None]] = tell_nobody,
    ) -> CallContext:
        remaining_s = context.time_remaining()
        return CallContext(
            caller,
            deadline_s=None if remaining_s is None else time.monotonic() + remaining_s,
            metadata=metadata,
            accept=accept,
            protocol=self._protocol,
        )


async def _abort(context: Any, error: DragomanError) -> None:
    status = rpc_status.to_status(to_status(error, error.request_id))
    await context.abort(status.code, status.details, status.trailing_metadata)
