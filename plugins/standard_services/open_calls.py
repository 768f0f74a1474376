"""Calls without a key, health and reflection: limits on their number per host, and on the wait for their message."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc.aio
from google.protobuf.message import DecodeError

from dragoman.errors import DragomanError
from service.rpc.methods import arrived
from service.security.hosts import host_of_peer
from service.telemetry.metrics import Metrics

_REASON: Final = "OPEN_CALLS_LIMITED"


class OpenCalls:
    """Limits the running calls of each host, over all methods that it wraps.

    Args:
        limit: the number of calls that one host may have at a time.
    """

    def __init__(self, limit: int, metrics: Metrics) -> None:
        self._limit = limit
        self._rejected = metrics.rejected_total.labels(_REASON)
        self._running: Counter[str] = Counter()

    def bound(self, handler: Any) -> Any:
        """Wrap the handler of a method with the limit."""

        async def bounded(requests: AsyncIterator[Any], context: Any) -> None:
            host = host_of_peer(context.peer())
            if self._running[host] >= self._limit:
                self._rejected.inc()
                message = f"at most {self._limit} calls of health and reflection may run for one host"
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
            self._running[host] += 1
            try:
                await _answer(handler, requests, context)
            finally:
                self._running[host] -= 1
                if not self._running[host]:
                    del self._running[host]

        return grpc.stream_stream_rpc_method_handler(bounded, handler.request_deserializer, handler.response_serializer)


async def _answer(handler: Any, requests: AsyncIterator[Any], context: Any) -> None:
    try:
        if handler.request_streaming:
            async for response in handler.stream_stream(requests, context):
                await context.write(response)
            return
        request = await arrived(context)
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the message is not a valid request")
    if isinstance(request, DragomanError):
        await context.abort(request.code, request.message)
    if handler.response_streaming:
        await handler.unary_stream(request, context)
    else:
        await context.write(await handler.unary_unary(request, context))
