"""The composition root and the life cycle of a server: listen, load, self-check, serve, drain, exit."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from threading import Thread
from typing import Any, Final

import prometheus_client
import structlog
import uvloop

from dragoman.address import Address
from dragoman.errors import DrainingError
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK
from service import plugins
from service.aio import first_of
from service.handlers.gate import Gate
from service.handlers.glossaries import glossaries_of
from service.handlers.translation import TranslationHandlers
from service.port import Port, PortParts
from service.registry import allocator
from service.registry.folders import folders_of
from service.registry.health import Health
from service.registry.loading import Load, Loader, load
from service.registry.models import ModelRegistry
from service.registry.residency import residency_of
from service.registry.watchdog import Watchdog
from service.rpc.grpc_service import GrpcService
from service.rpc.listener import Listener
from service.rpc.translation import Translation
from service.security.access import access_of
from service.security.addresses import cannot_listen
from service.security.connection_limits import HANDSHAKE_TIMEOUT_S
from service.settings import Settings, SettingsError
from service.signals import Signals
from service.telemetry import logs
from service.telemetry.access_log import AccessLog, Tracer
from service.telemetry.hint import suggest
from service.telemetry.metrics import Metrics
from service.worker import Worker

_ANSWER_GRACE_S: Final = 5.0  # for the last answers to be taken, after the calls have ended
# Objects, ten times Python's number, with which collections took 2.8 % of the time under load, and up to 88 ms.
_COLLECT_AFTER: Final = 7_000

_log = structlog.get_logger()


def serve(settings: Settings, load: Load = load, worker: Worker | None = None) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        load: makes a served model of a bundle, on a thread beside the event loop.
        worker: its connection to the supervisor, where it is one of several servers on the same ports.

    Returns:
        The exit code: 0 after a signal, 1 if an engine ended by itself or the server could no longer accept calls.

    Raises:
        BundleError: a model cannot be served, or there is none.
        SettingsError: a certificate or the file of API keys cannot be used.
        OSError: cannot listen on an address.
    """
    metrics = Metrics()
    with _tracer(settings) as tracer, logs.running(settings.log_format, metrics) as log:
        allocator.share_one_heap()
        # Imported objects stay: so no collection visits them while calls wait.
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the page
        access_log = AccessLog(metrics, log, settings.log_requests, tracer)
        return uvloop.run(_run(settings, load, worker, metrics, access_log))


async def _run(settings: Settings, load: Load, worker: Worker | None, metrics: Metrics, access_log: AccessLog) -> int:
    return await _Server(settings, load, worker, metrics, access_log).run()


@contextmanager
def _tracer(settings: Settings) -> Iterator[Tracer | None]:
    """Make the tracer, if the settings want one; only then is the extra needed."""
    if not settings.otlp_endpoint:
        yield None
        return
    make = plugins.first(plugins.TRACERS)
    if make is None:
        raise SettingsError(f"DRAGOMAN_OTLP_ENDPOINT (--otlp-endpoint): needs a plugin of {plugins.TRACERS}")
    tracer: Tracer = make(settings.otlp_endpoint)
    try:
        yield tracer
    finally:
        tracer.close()


class _Server:
    """The parts of one server; needs a running event loop."""

    def __init__(
        self, settings: Settings, load: Load, worker: Worker | None, metrics: Metrics, access_log: AccessLog
    ) -> None:
        self._signals = Signals()  # first: a signal while the models load must not kill the process
        if worker:
            self._signals.stop_with(worker.supervisor)
        self._worker = worker
        self._settings = settings
        self._metrics = metrics
        access = access_of(settings, metrics)
        self._listener = Listener(settings, metrics, access, self._add_services)
        self._gate = Gate()
        self._health = Health()
        metrics.serving.set_function(lambda: self._health.serving)
        self._registry = ModelRegistry(metrics, self._health, settings.device, self._gate.open, settings.pivot_language)
        loader = Loader(settings, metrics, load)
        self._memory = residency_of(settings, metrics, self._registry, self._health, loader)
        glossaries = glossaries_of(settings.glossaries)
        self._handlers = handlers = TranslationHandlers(
            self._gate, settings, metrics, access.callers, access_log, glossaries, self._memory
        )
        self._services: list[GrpcService] = [
            Translation(handlers, settings.max_request_bytes),
            *(make(handlers, settings) for make in plugins.load(plugins.SERVICES)),
        ]
        parts = PortParts(settings, metrics, handlers, self._health, access)
        self._ports: list[Port] = [make(parts) for make in plugins.load(plugins.PORTS)]
        self._failures = (self._registry.failed, *(port.lost for port in self._ports))
        self._folders = folders_of(settings, metrics, self._memory, glossaries, self._registry, self._health)
        self._following: list[asyncio.Task[None]] = []
        self._detection: asyncio.Task[None] | None = None  # kept here: the event loop keeps only weak references

    async def run(self) -> int:
        async with self._metrics_page(), AsyncExitStack() as ports:
            others_serve = self._worker is not None and self._worker.takes_a_place
            if not others_serve:
                await self._listen(ports)
            try:
                await self._folders.start(self._signals.stop)
                if others_serve:
                    await self._listen(ports)
                if not self._signals.stop.is_set():
                    await self._serve()
            finally:
                await self._drain()
        self._signals.close()
        return EXIT_FAILED if self._failed() else EXIT_OK

    async def _listen(self, ports: AsyncExitStack) -> None:
        await ports.enter_async_context(self._listener.listening())
        for port in self._ports:
            await ports.enter_async_context(port.listening())

    def _failed(self) -> bool:
        return any(failure.is_set() for failure in self._failures)

    async def _serve(self) -> None:
        """Take calls until a signal, or until an engine ends by itself, or a port is lost."""
        self._registry.open()
        _log.info("serving", models=self._registry.names)
        if self._worker:
            self._worker.tell_serving()
        else:
            suggest(self._settings)
        for following in (self._folders.follow(self._signals.reload), self._memory.follow()):
            self._following.append(asyncio.create_task(following))
        if self._settings.http_address:  # HTTP protocols and the web page detect languages without being asked
            self._detection = asyncio.create_task(self._handlers.languages.load())
        async with self._watched():
            await first_of(self._signals.stop, *self._failures)
            self._folders.stop()
            await self._announce()

    @asynccontextmanager
    async def _metrics_page(self) -> AsyncIterator[None]:
        if self._worker:
            async with self._worker.showing(self._metrics.registry):
                yield
            return
        address = Address.parse(self._settings.metrics_address)
        try:
            server, _ = prometheus_client.start_http_server(address.port, address.host, registry=self._metrics.registry)
        except OSError as error:
            raise cannot_listen(address, "--metrics-address", error) from error
        server.RequestHandlerClass.timeout = HANDSHAKE_TIMEOUT_S  # type: ignore[attr-defined]  # each takes a thread
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that left or was silent
        _log.info(f"metrics on {address._replace(port=server.server_port)}")
        try:
            yield
        finally:
            ending = Thread(target=server.shutdown)
            ending.start()
            # The thread of the HTTP server checks for its end twice a second, and at each connection.
            with suppress(OSError):
                socket.create_connection((address.host, server.server_port), timeout=1).close()
            ending.join()
            server.server_close()

    def _add_services(self, server: Any) -> None:
        """Add all services to a gRPC server; at first the answers are UNAVAILABLE and NOT_SERVING."""
        for service in self._services:
            service.add_to(server)
        for add in plugins.load(plugins.STANDARD_SERVICES):
            add(server, self._services, self._health, self._settings, self._metrics)

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Report NOT_SERVING while a step stalls."""
        self._metrics.step_age_seconds.set_function(lambda: max(self._registry.step_ages_s().values(), default=0.0))
        watchdog = Watchdog(
            self._registry.step_ages_s, self._settings.step_timeout_s, self._health.stall, self._metrics
        )
        watching = asyncio.create_task(watchdog.watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _announce(self) -> None:
        """Report NOT_SERVING, and still take calls until clients have had time to notice it."""
        self._health.leave()
        if self._settings.shutdown_delay_s and not self._failed():
            _log.info("shutting down", delay_s=self._settings.shutdown_delay_s)
            await first_of(self._signals.force, *self._failures, timeout_s=self._settings.shutdown_delay_s)

    async def _drain(self) -> None:
        """Refuse new calls, let running calls finish within the time of the settings, stop the engines."""
        timeout_s = self._settings.drain_timeout_s
        self._health.leave()
        self._registry.close()
        self._gate.close()
        self._folders.stop()
        self._memory.close()
        _log.info("draining", timeout_s=timeout_s)
        idle, force = (asyncio.create_task(wait) for wait in (self._gate.idle(), self._signals.force.wait()))
        await asyncio.wait([idle, force], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not idle.done():
            when = "told again to" if force.done() else f"{timeout_s:g} s after it had to"
            self._gate.abandon(DrainingError(f"not complete when the server stopped, {when}"))
        force.cancel()
        # The call of a caller that does not read its answer ends with the connection.
        await asyncio.wait([idle], timeout=_ANSWER_GRACE_S)
        idle.cancel()
        try:
            await asyncio.gather(*self._following)
            await self._memory.closed()  # a model that is being loaded is stopped with the others
        finally:
            await self._registry.stop()
            self._health.end()
        _log.info("stopped")
