"""The methods of a service on gRPC: each call becomes a call of a handler, and each of its ends a status.

A call without a valid API key ends at its headers: no byte of its messages is read, kept or parsed.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import grpc.aio
from grpc_status import rpc_status

from dragoman.errors import DragomanError, to_status
from service.handlers.context import CallContext, tell_nobody
from service.handlers.translation import TranslationHandlers
from service.rpc.request_parsing import arrived, parser
from service.security.callers import Caller, Metadata
from service.wire import Protocol

# All methods read their messages themselves: gRPC does not say when there is none, or when it is slow.
ONCE: Final = grpc.stream_unary_rpc_method_handler
MANY: Final = grpc.stream_stream_rpc_method_handler


class Headers(NamedTuple):
    """What came before the messages of a call.

    Attributes:
        caller: who calls.
        metadata: as it came.
    """

    caller: Caller
    metadata: Metadata


Serve = Callable[[Any, Headers], Awaitable[Any]]


class Methods:
    """Makes methods for servers of `grpc.aio`.

    Args:
        handlers: of their calls.
        max_request_bytes: of one message.
        protocol: by what calls of these methods come.
    """

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int, protocol: Protocol) -> None:
        self._handlers = handlers
        self._max_request_bytes = max_request_bytes
        self._protocol = protocol

    def make(self, name: str, kind: Any, serve: Serve, request: Any, answer: Any) -> Any:
        """Make a method, which identifies its caller first of all and answers each error with a status.

        Args:
            name: under which its calls are counted.
            kind: `ONCE`, where it has one answer, or `MANY`.
            serve: answers a call of a context and headers.
            request: the class of its messages.
            answer: that of its answers.
        """
        parse = parser(request.FromString, self._max_request_bytes)
        return kind(self._guarded(name, serve), parse, answer.SerializeToString)

    async def request(self, name: str, context: Any, headers: Headers) -> tuple[Any, CallContext]:
        """Wait for the one message of a call, which begins with it.

        Raises:
            DragomanError: there is no valid one; the call is over.
        """
        request = await arrived(context)
        call = self.begun(context, headers)
        if isinstance(request, DragomanError):
            self._handlers.refuse(name, call, request)
        return request, call

    def begun(self, context: Any, headers: Headers, accept: Callable[[], Awaitable[None]] = tell_nobody) -> CallContext:
        """Begin a call.

        Args:
            context: of gRPC.
            headers: of the call.
            accept: see `CallContext`.
        """
        remaining_s = context.time_remaining()
        return CallContext(
            headers.caller,
            deadline_s=None if remaining_s is None else time.monotonic() + remaining_s,
            metadata=headers.metadata,
            accept=accept,
            protocol=self._protocol,
        )

    def _guarded(self, name: str, serve: Serve) -> Callable[[Any, Any], Awaitable[Any]]:
        async def answer(_: Any, context: Any) -> Any:
            metadata = context.invocation_metadata() or ()
            try:
                caller = self._handlers.identify(name, context.peer(), metadata, self._protocol)
                return await serve(context, Headers(caller, metadata))
            except DragomanError as error:
                status = rpc_status.to_status(to_status(error, error.request_id))
            return await context.abort(status.code, status.details, status.trailing_metadata)

        return answer
