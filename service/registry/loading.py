"""A bundle on disk becomes a served model: engine, translator and caches, checked and running."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, Protocol

import structlog

from dragoman.bundle import Bundle
from service.engine.engine import Engine
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.registry import self_check
from service.registry.allocator import give_back
from service.registry.capacity import slots_of
from service.registry.catalog import ServedModel
from service.settings import MEGABYTE, Settings
from service.telemetry.metrics import Metrics
from service.telemetry.segment_stats import SegmentStats
from service.text.translator import Limits, Translator

_log = structlog.get_logger()


class EngineHandle(Protocol):
    """What the server needs of an engine that decodes."""

    ended: Future[None]

    def stop(self) -> None:
        """End it, and give back what it holds; what is unfinished fails."""


class LoadedModel(NamedTuple):
    """One served model and the engine that runs it.

    Attributes:
        model: for the catalog.
        engine: it runs, and ends when it is told to.
        step_age_s: how long its current step has been running.
    """

    model: ServedModel
    engine: EngineHandle
    step_age_s: Callable[[], float] = lambda: 0.0

    @property
    def name(self) -> str:
        """Of the model."""
        return self.model.manifest.name


Load = Callable[[Bundle, Settings, Metrics, asyncio.AbstractEventLoop], LoadedModel]


def load(bundle: Bundle, settings: Settings, metrics: Metrics, loop: asyncio.AbstractEventLoop) -> LoadedModel:
    """Load a bundle, check that it decodes each sentence in its own way, and start its engine; takes seconds.

    Args:
        bundle: whose hashes were checked.
        settings: of the server.
        metrics: of the server.
        loop: on which callers are told of progress.

    Raises:
        BundleError: a graph or the tokenizer cannot be loaded, the graphs do not run, or not as they should.
    """
    mailbox = Mailbox(
        settings.queue_source_tokens,
        SegmentStats(metrics.of(bundle.manifest.name)),
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
        slots=slots,
        encoder_cache_bytes=settings.encoder_cache_mb * MEGABYTE,
        patience_s=settings.step_timeout_s,
    )
    try:
        self_check.check(engine, bundle.manifest, tokenizer.vocabulary_sizes[0])
        give_back()  # the weights as they were before onnxruntime laid them out
        engine.start()
    except BaseException:
        engine.stop()
        raise
    translator = Translator(bundle.manifest, tokenizer, Limits.of(settings), slots=slots)
    _log.info("loaded", model=bundle.manifest.name, precision=bundle.manifest.precision, path=str(bundle.path))
    intake = Intake(
        mailbox,
        metrics.of(bundle.manifest.name),
        limit_bytes=settings.result_cache_mb * MEGABYTE,
        coalesce=settings.coalesce,
    )
    return LoadedModel(ServedModel(bundle.manifest, translator, mailbox, intake, slots), engine, engine.step_age_s)
