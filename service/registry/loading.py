"""A bundle on disk becomes a served model: engine, translator and caches, checked and running."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, DragomanError
from service import plugins
from service.engine.engine import Engine
from service.engine.graphs import Graphs
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.registry import allocator
from service.registry.capacity import run_threads_of, slots_of
from service.registry.catalog import Pipeline, ServedModel
from service.registry.model_cost import Cost, anonymous_bytes
from service.settings import MEGABYTE, Settings
from service.telemetry.metrics import Metrics
from service.text.translator import Limits, Translator

_log = structlog.get_logger()


LOADED: Final = "loaded"
FAILED: Final = "failed"

Load = Callable[[Bundle, Settings, Metrics, asyncio.AbstractEventLoop], ServedModel]


def load(
    bundle: Bundle,
    settings: Settings,
    metrics: Metrics,
    loop: asyncio.AbstractEventLoop,
    *,
    take: Callable[[Bundle], Graphs | None] = lambda bundle: None,
) -> ServedModel:
    """Load a bundle, have plugins check that it decodes as it should, and start its engine; takes seconds.

    Args:
        bundle: its hashes were checked before, or are checked during the load.
        loop: the event loop on which callers learn of progress.
        take: gives the graphs of the bundle if they are open already, else None.

    Raises:
        BundleError: a graph or the tokenizer cannot be loaded, or the graphs do not run or decode wrongly.
    """
    mailbox = Mailbox(
        settings.queue_source_tokens,
        metrics.of(bundle.manifest.name),
        limit_text_bytes=settings.queue_mb * MEGABYTE,
        max_delay_s=settings.max_delay_s,
    )
    mailbox.bind(loop)
    tokenizer = bundle.tokenizer()
    slots = slots_of(bundle.manifest, settings)
    engine = Engine(
        bundle,
        mailbox,
        metrics,
        device=settings.device,
        threads=settings.decoding_threads(),
        run_threads=run_threads_of(bundle, settings),
        slots=slots,
        encoder_cache_bytes=settings.encoder_cache_mb * MEGABYTE,
        patience_s=settings.step_timeout_s,
        shortlist=settings.shortlists,
        graphs=take(bundle),
    )
    try:
        for check in plugins.load(plugins.CHECKS):
            check(engine, bundle.manifest, tokenizer.vocabulary_sizes[0])
        allocator.give_back()  # frees the first copy of the weights: onnxruntime has reordered them
        engine.start()
    except BaseException:
        engine.stop()
        raise
    translator = Translator(bundle.manifest, tokenizer, Limits.of(settings), slots=slots)
    intake = Intake(
        mailbox,
        metrics.of(bundle.manifest.name),
        limit_bytes=settings.result_cache_mb * MEGABYTE,
        coalesce=settings.coalesce,
    )
    return ServedModel(bundle.manifest, slots, Pipeline(translator, mailbox, intake), engine)


class Loader:
    """Loads bundles on a thread beside the event loop, and counts the loads."""

    def __init__(self, settings: Settings, metrics: Metrics, load: Load) -> None:
        self._settings = settings
        self._metrics = metrics
        self._load = load

    async def load(self, bundle: Bundle, cost: Cost) -> ServedModel:
        """Load a bundle, and set the cost of its model.

        Args:
            bundle: its hashes are checked unless they were checked before.
            cost: the estimate; corrected by the growth of the process during the load.

        Raises:
            BundleError: it cannot be loaded.
        """
        outcomes = self._metrics.model_loads_total
        try:
            loaded = await asyncio.to_thread(self._loaded, bundle, cost, asyncio.get_running_loop())
        except BundleError:
            outcomes.labels(bundle.manifest.name, FAILED).inc()
            raise
        outcomes.labels(bundle.manifest.name, LOADED).inc()
        return loaded

    def _loaded(self, bundle: Bundle, cost: Cost, loop: asyncio.AbstractEventLoop) -> ServedModel:
        loaded = None
        try:
            with allocator.loading:
                before_bytes = anonymous_bytes()
                with _checked(bundle) as checked:
                    loaded = self._load(checked, self._settings, self._metrics, loop)
                loaded.cost_bytes = cost.corrected(anonymous_bytes() - before_bytes).total_bytes
            manifest = bundle.manifest
            told = {"note": manifest.note} if manifest.note else {}
            _log.info("loaded", model=manifest.name, precision=manifest.precision, path=str(bundle.path), **told)
            return loaded
        except Exception as error:  # onnxruntime's exceptions share no base class of its own
            if loaded and loaded.engine:
                loaded.engine.stop()
            loaded, why = None, in_one_line(error)
        allocator.give_back()  # `error` is deleted here, and with it the loaded objects
        raise BundleError(why)


@contextmanager
def _checked(bundle: Bundle) -> Iterator[Bundle]:
    """Check the hashes of a bundle by the end of the block, unless they were checked before.

    Raises:
        BundleError: a file is missing or has changed, or another bundle is in its place now.
    """
    if bundle.hashed:
        yield bundle
        return
    with Bundle.opening(bundle.path) as found:
        if found.manifest != bundle.manifest:
            raise BundleError(
                f"{bundle.path}: is another bundle than when the server last read it; SIGHUP has it read again"
            )
        yield found


def in_one_line(error: Exception) -> str:
    """Describe an error in one line."""
    kind = "" if isinstance(error, DragomanError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())
