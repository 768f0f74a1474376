"""Calls without a valid API key end at their headers: no byte of their messages is read, kept or parsed."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc.aio
from grpc_status import rpc_status

from dragoman.errors import UnauthenticatedError, to_status
from service.security.callers import Callers
from service.security.hosts import host_of_peer
from service.telemetry.access_log import AccessLog
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics


class Authentication(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Asks for a key before every method of one service; health and reflection, of other services, need none."""

    def __init__(self, service: str, callers: Callers, metrics: Metrics, access_log: AccessLog) -> None:
        self._prefix = f"/{service}/"
        self._callers = callers
        self._metrics = metrics
        self._access_log = access_log

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        """Give the handler of a method, or one that refuses the call."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith(self._prefix):
            return handler
        try:
            self._callers.authenticate(handler_call_details.invocation_metadata)
        except UnauthenticatedError as error:
            return self._refusing(method.removeprefix(self._prefix), error)
        return handler

    def _refusing(self, method: str, error: UnauthenticatedError) -> Any:
        """Make a handler that ends a call of any kind: one of streams, which asks for no message by itself."""

        async def refuse(_: Any, context: Any) -> NoReturn:
            self._metrics.rejected_total.labels(error.reason).inc()
            self._metrics.requests_total.labels(method, error.code.name).inc()
            record = CallStats(method, caller=host_of_peer(context.peer()), code=error.code, reason=error.reason)
            record.duration_s = time.monotonic() - record.began_s
            self._access_log.enter(record, context)
            status = rpc_status.to_status(to_status(error))
            await context.abort(status.code, status.details, status.trailing_metadata)
            raise AssertionError("abort always raises")

        return grpc.stream_stream_rpc_method_handler(refuse)
