"""The composition root and the life of a server: listen, load, self-check, serve, drain, exit."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import grpc.aio
import prometheus_client
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from dragoman.bundle import Bundle, find_bundles
from dragoman.errors import BundleError, DrainingError, InternalError
from dragoman.tokenizer import Tokenizer
from dragoman.v1 import translation_pb2
from dragoman.v1.translation_pb2_grpc import add_TranslationServicer_to_server
from service import allocator, logs, self_check
from service.capacity import slots_of
from service.catalog import Catalog, ServedModel
from service.engine import Engine
from service.ledger import Ledger
from service.mailbox import Mailbox
from service.malformed import MalformedRequests
from service.metrics import Metrics
from service.result_cache import ResultCache
from service.servicer import Servicer
from service.settings import MEGABYTE, Address, Settings
from service.signals import Signals
from service.translator import Limits, Translator
from service.watchdog import Watchdog

EXIT_OK: Final = 0
EXIT_ENGINE_ENDED: Final = 1

_SERVICE: Final = translation_pb2.DESCRIPTOR.services_by_name["Translation"].full_name
_STOP_GRACE_S: Final = 1.0  # for answers on their way and for health watchers, after all calls have ended
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING

_log = structlog.get_logger()


class Running(Protocol):
    """What the server needs of an engine that decodes."""

    ended: Future[None]

    def stop(self) -> None:
        """End it; what is unfinished fails."""


class Loaded(NamedTuple):
    """One served model and the engine that runs it.

    Attributes:
        model: for the catalog.
        engine: it runs, and ends when it is told to.
        step_age_s: how long its current step has been running.
    """

    model: ServedModel
    engine: Running
    step_age_s: Callable[[], float] = lambda: 0.0


Load = Callable[[Path, Settings, Metrics, asyncio.AbstractEventLoop], Loaded]


def serve(settings: Settings, load: Load | None = None) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        settings: of the server.
        load: makes a served model of a bundle's folder, off the event loop; None: with our engine.

    Returns:
        The exit code: 0 after a signal, 1 if an engine ended by itself.

    Raises:
        BundleError: a model cannot be served, or there is none.
        OSError: cannot listen on an address.
    """
    logs.configure(settings.log_format)
    allocator.share_one_heap()
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the page
    return asyncio.run(_Server(settings, load or _load_one).run())


class _Server:
    """The parts of one server; needs a running event loop from :meth:`run` on."""

    def __init__(self, settings: Settings, load: Load) -> None:
        self._settings = settings
        self._load_one = load
        self._metrics = Metrics()
        self._loaded: list[Loaded] = []

    async def run(self) -> int:
        signals = Signals()  # first of all: a signal while the models load must not kill
        stop = signals.stop
        self._servicer = Servicer(self._settings, self._metrics)
        self._health = health.aio.HealthServicer()
        async with self._metrics_server(), self._grpc_server():
            try:
                await self._load(stop)
                opened = not stop.is_set()
                if opened:
                    await self._open()
                async with self._watched():
                    code = await self._until_ended(stop)
                if opened and code == EXIT_OK:
                    await self._announce(signals)
            finally:
                await self._drain(signals)
        return code

    @asynccontextmanager
    async def _metrics_server(self) -> AsyncIterator[None]:
        address = Address.parse(self._settings.metrics_address)
        try:
            server, _ = prometheus_client.start_http_server(address.port, address.host, registry=self._metrics.registry)
        except OSError as error:
            raise _cannot_listen(address, error) from error
        _log.info(f"metrics on {address._replace(port=server.server_port)}")
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()

    @asynccontextmanager
    async def _grpc_server(self) -> AsyncIterator[None]:
        """Listen, at first answering UNAVAILABLE and NOT_SERVING."""
        server = grpc.aio.server(interceptors=[MalformedRequests(_SERVICE)], options=_options(self._settings))
        add_TranslationServicer_to_server(self._servicer, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection([_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
        await self._set_health(_NOT_SERVING)
        address = Address.parse(self._settings.address)
        _check_free(address)
        port = server.add_insecure_port(str(address))
        await server.start()
        _log.info(f"listening on {address._replace(port=port)}")
        try:
            yield
        finally:
            await server.stop(_STOP_GRACE_S)

    async def _set_health(self, status: Any) -> None:
        for service in ("", _SERVICE):
            await self._health.set(service, status)

    async def _load(self, stop: asyncio.Event) -> None:
        """Load every bundle, one after the other, off the event loop; leave early if told to stop."""
        paths = find_bundles(self._settings.models)
        if not paths:
            raise BundleError(f"{self._settings.models}: there is no bundle (no bundle.json in or below it)")
        loop = asyncio.get_running_loop()
        for path in paths:
            if stop.is_set():
                return
            self._loaded.append(await asyncio.to_thread(self._load_one, path, self._settings, self._metrics, loop))

    async def _open(self) -> None:
        """Take calls."""
        models = [loaded.model for loaded in self._loaded]
        _check_names(models)
        mailboxes = [model.mailbox for model in models]
        self._metrics.watch_queue(
            lambda: sum(mailbox.queued_segments for mailbox in mailboxes),
            lambda: sum(mailbox.queued_source_tokens for mailbox in mailboxes),
        )
        for model in models:
            manifest = model.manifest
            self._metrics.describe_model(manifest.name, manifest.precision, self._settings.device)
        self._servicer.open(Catalog(models))
        await self._set_health(_SERVING)
        _log.info("serving", models=[model.manifest.name for model in models])

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Report NOT_SERVING while a step stalls."""

        def step_age_s() -> float:
            return max((loaded.step_age_s() for loaded in self._loaded), default=0.0)

        async def tell(stalled: bool) -> None:
            await self._set_health(_NOT_SERVING if stalled else _SERVING)

        self._metrics.watch_steps(step_age_s)
        watchdog = Watchdog(step_age_s, self._settings.step_timeout_s, tell, self._metrics)
        watching = asyncio.create_task(watchdog.watch())
        try:
            yield
        finally:
            watching.cancel()

    async def _until_ended(self, stop: asyncio.Event) -> int:
        """Wait for a signal, or for an engine that ends though nobody told it to."""
        stopped = asyncio.create_task(stop.wait())
        engines = [asyncio.wrap_future(loaded.engine.ended) for loaded in self._loaded]
        futures: list[asyncio.Future[Any]] = [stopped, *engines]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        ended = [engine for engine in engines if engine.done()]
        if not ended:
            return EXIT_OK
        stopped.cancel()
        _log.error("an engine ended", error=type(ended[0].exception()).__name__)
        self._servicer.close()
        self._servicer.abandon(InternalError("the engine of the server failed"))
        return EXIT_ENGINE_ENDED

    async def _announce(self, signals: Signals) -> None:
        """Report NOT_SERVING, and take calls all the same until whoever sends them has had the time to notice."""
        await self._health.enter_graceful_shutdown()
        if self._settings.shutdown_delay_s:
            _log.info("shutting down", delay_s=self._settings.shutdown_delay_s)
            await signals.pause(self._settings.shutdown_delay_s)

    async def _drain(self, signals: Signals) -> None:
        """Refuse new calls, finish those that run as long as the settings allow, stop the engines."""
        timeout_s = self._settings.drain_timeout_s
        await self._health.enter_graceful_shutdown()
        self._servicer.close()
        _log.info("draining", timeout_s=timeout_s)
        idle, hurry = (asyncio.create_task(wait) for wait in (self._servicer.idle(), signals.hurry.wait()))
        await asyncio.wait([idle, hurry], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not idle.done():
            when = "told again to" if hurry.done() else f"{timeout_s:g} s after it had to"
            self._servicer.abandon(DrainingError(f"not complete when the server stopped, {when}"))
        hurry.cancel()
        await idle
        for loaded in self._loaded:
            loaded.model.mailbox.close()
            await asyncio.to_thread(loaded.engine.stop)
        _log.info("stopped")


def _load_one(path: Path, settings: Settings, metrics: Metrics, loop: asyncio.AbstractEventLoop) -> Loaded:
    """Load a bundle, check that it decodes each sentence in its own way, and start its engine."""
    bundle = Bundle.open(path)
    mailbox = Mailbox(settings.queue_source_tokens, Ledger(metrics))
    mailbox.bind(loop)
    engine = Engine(
        bundle,
        mailbox,
        metrics,
        device=settings.device,
        threads=settings.decoding_threads(),
        slots=slots_of(bundle.manifest, settings),
        encoder_cache_bytes=settings.encoder_cache_mb * MEGABYTE,
        patience_s=settings.step_timeout_s,
    )
    tokenizer = Tokenizer.open(bundle.path)
    self_check.check(engine.batches, bundle.manifest, tokenizer.vocabulary_sizes[0])
    engine.start()
    translator = Translator(bundle.manifest, tokenizer, Limits.of(settings))
    _log.info("loaded", model=bundle.manifest.name, precision=bundle.manifest.precision, path=str(path))
    results = _results(mailbox, settings, metrics, loop)
    return Loaded(ServedModel(bundle.manifest, translator, mailbox, results), engine, engine.step_age_s)


def _results(
    mailbox: Mailbox, settings: Settings, metrics: Metrics, loop: asyncio.AbstractEventLoop
) -> ResultCache | None:
    if not settings.result_cache_mb and not settings.coalesce:
        return None
    limit_bytes = settings.result_cache_mb * MEGABYTE
    return ResultCache(mailbox, loop, metrics, limit_bytes=limit_bytes, coalesce=settings.coalesce)


def _check_names(models: list[ServedModel]) -> None:
    """Refuse two models of one name: a request could not say which it means.

    Raises:
        BundleError: there are such.
    """
    names = [model.manifest.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise BundleError(f"{names.count(name)} bundles are called {name!r}; keep one of them")


def _options(settings: Settings) -> list[tuple[str, int]]:
    return [
        # Else a second server on the port would start without an error and get half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", settings.max_request_bytes),
        ("grpc.max_send_message_length", -1),
    ]


def _check_free(address: Address) -> None:
    """Bind and let go: gRPC itself would write about a failure to standard error and not say why.

    Raises:
        OSError: the address is unknown, not of this machine, or taken.
    """
    failure = None
    try:
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise _cannot_listen(address, error) from error
    for family, kind, protocol, _, place in places:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
                return
        except OSError as error:
            failure = error
    if failure is not None:
        raise _cannot_listen(address, failure) from failure


def _cannot_listen(address: Address, error: OSError) -> OSError:
    return OSError(f"cannot listen on {address}: {error.strerror or error}")
