"""The models that are served now, added and replaced without a call noticing; lives on the event loop."""

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import structlog

from service.options import Priority
from service.queue.mailbox import Mailbox
from service.registry import allocator
from service.registry.catalog import Catalog, EngineHandle, ServedModel
from service.registry.health import Health
from service.telemetry.metrics import Metrics

_LOOK_S: Final = 0.05  # between two checks whether a call still needs a replaced model

_log = structlog.get_logger()


class ModelRegistry:
    """The served models, and the replaced models that still finish their segments.

    Attributes:
        failed: set once the engine of a served model has ended by itself. The engine of a replaced model fails its own
            calls only.
    """

    def __init__(
        self, metrics: Metrics, health: Health, device: str, show: Callable[[Catalog], None], pivot_language: str = ""
    ) -> None:
        """Make a registry without models.

        Args:
            show: called with each new catalog: calls choose among its models from then on.
        """
        self._metrics = metrics
        self._health = health
        self._device = device
        self._show = show
        self._pivot_language = pivot_language
        # These two are replaced, never changed: the metrics' thread reads them.
        self._served: tuple[ServedModel, ...] = ()
        self._models: tuple[ServedModel, ...] = ()
        self._retiring: set[asyncio.Task[None]] = set()
        self._ending: list[ServedModel] = []
        # One thread: it has dropped its reference to a stopped engine before it returns that engine's memory.
        self._stopper = ThreadPoolExecutor(1, thread_name_prefix="stopper")
        self._open = False
        self._stopping = False
        self.failed = asyncio.Event()
        metrics.queue_segments.set_function(lambda: sum(len(each.waiting) for each in self._mailboxes()))
        metrics.queue_source_tokens.set_function(
            lambda: sum(box.waiting.load.source_tokens for box in self._mailboxes())
        )
        for priority in Priority:
            gauge = metrics.queue_priority_source_tokens.labels(priority.name.lower())
            gauge.set_function(partial(self._queued_source_tokens, priority))
        metrics.drain_source_tokens_per_second.set_function(
            lambda: sum(each.admission.drained_per_second or 0.0 for each in self._mailboxes())
        )
        metrics.estimated_delay_seconds.set_function(
            lambda: max((each.admission.backlog_s for each in self._mailboxes()), default=0.0)
        )

    @property
    def served(self) -> tuple[ServedModel, ...]:
        """The models that calls choose among once the registry is open; some may not be in memory."""
        return self._served

    @property
    def names(self) -> list[str]:
        """The names of the served models."""
        return [model.name for model in self._served]

    @property
    def in_memory(self) -> list[ServedModel]:
        """The models that take memory: served models, and models that finish their segments or are being ended."""
        return [*self._models, *self._ending]

    @property
    def ending(self) -> frozenset[ServedModel]:
        """The models of `in_memory` that are no longer served, or are being ended."""
        return frozenset(self._ending)

    def find(self, name: str) -> ServedModel | None:
        """Find a served model; None where there is none of this name."""
        return next((model for model in self._served if model.name == name), None)

    def step_ages_s(self) -> dict[str, float]:
        """Measure how long the current step of each model has been running; for any thread."""
        return {model.name: engine.step_age_s() for model in self._models if (engine := model.engine) is not None}

    def open(self) -> None:
        """Show the models to calls, now and after every change."""
        self._open = True
        self._switch(self._served)

    def close(self) -> None:
        """Show calls no further change of the models."""
        self._open = False

    def put(self, model: ServedModel, *, is_new: bool = True) -> None:
        """Take a loaded model whose engine runs.

        Args:
            is_new: True: serve it in place of a model of its name, which finishes its segments and is ended. False: it
                is served already and was only loaded; it is ended if it was withdrawn or replaced meanwhile.
        """
        engine = model.engine
        assert engine is not None, "it runs"
        asyncio.wrap_future(engine.ended).add_done_callback(lambda ended: self._note_end(model, engine, ended))
        self._models = (*self._models, model)
        if is_new:
            self.offer(model)
        elif model not in self._served:
            for late in self._leave([model]):
                self._retire(late)
        self._tell_memory()

    def offer(self, model: ServedModel) -> None:
        """Serve a model that may not be in memory, in place of a model of its name."""
        self._exchange(model.name, model)

    def withdraw(self, name: str) -> None:
        """Stop serving a model; it finishes its segments and is ended."""
        self._exchange(name)

    async def unload(self, model: ServedModel) -> None:
        """Remove a model that no call needs from memory, and wait until its memory is free; it stays served."""
        self._leave([model])
        await self._end(model)
        await self._give_back(model)

    async def stop(self) -> None:
        """End all engines; unfinished segments fail."""
        self._stopping = True
        await asyncio.gather(*self._retiring)
        for model in self._models:
            await self._end(model)

    def _exchange(self, name: str, *new: ServedModel) -> None:
        """Serve the new models in place of a model of this name."""
        old = [model for model in self._served if model.name == name]
        self._switch((*(model for model in self._served if model not in old), *new))
        for model in self._leave(old):
            self._retire(model)

    def _switch(self, models: tuple[ServedModel, ...]) -> None:
        for name in set(self.names) - {model.name for model in models}:
            self._metrics.model_info.remove(name)
        self._served = models
        for model in models:
            info = {"precision": model.manifest.precision, "device": self._device}
            self._metrics.model_info.labels(model.name).info(info)
        if self._open:
            self._show(Catalog(models, self._pivot_language))
            self._health.serve(self.names)

    def _leave(self, models: Collection[ServedModel]) -> list[ServedModel]:
        """Move models from those in memory to those that are ending; gives the moved models."""
        leaving = [model for model in self._models if model in models]
        self._models = tuple(model for model in self._models if model not in leaving)
        self._ending += leaving
        self._tell_memory()
        return leaving

    def _tell_memory(self) -> None:
        self._metrics.tell_memory({model.name: model.cost_bytes for model in self._models})

    def _mailboxes(self) -> list[Mailbox]:
        """List the mailboxes of the models in memory; for any thread, also while models leave."""
        pipelines = [model.pipeline for model in self._models]
        return [pipeline.mailbox for pipeline in pipelines if pipeline is not None]

    def _queued_source_tokens(self, priority: Priority) -> int:
        return sum(mailbox.waiting.source_tokens_of(priority) for mailbox in self._mailboxes())

    def _retire(self, model: ServedModel) -> None:
        task = asyncio.create_task(self._end_when_idle(model))
        self._retiring.add(task)
        self._metrics.retiring_models.inc()
        task.add_done_callback(self._retired)

    def _retired(self, task: asyncio.Task[None]) -> None:
        self._retiring.discard(task)
        self._metrics.retiring_models.dec()

    async def _end_when_idle(self, model: ServedModel) -> None:
        while model.busy and not self._stopping:
            await asyncio.sleep(_LOOK_S)
        await self._end(model)
        _log.info("retired", model=model.name)
        await self._give_back(model)

    def _note_end(self, model: ServedModel, engine: EngineHandle, ended: "asyncio.Future[None]") -> None:
        error = ended.exception()
        serving = model in self._models and model.engine is engine
        if error is None and (self._stopping or not serving):
            return
        _log.error("an engine ended", model=model.name, error=type(error).__name__)
        if serving:
            self.failed.set()

    async def _end(self, model: ServedModel) -> None:
        """End the engine of a model, and forget the engine: its memory is free then."""
        model.close()
        engine, model.engine = model.engine, None
        assert engine is not None, "it is ended once"
        await asyncio.get_running_loop().run_in_executor(self._stopper, engine.stop)

    async def _give_back(self, model: ServedModel) -> None:
        """Return the free memory of an ended model to the system."""
        await asyncio.get_running_loop().run_in_executor(self._stopper, allocator.give_back)
        self._ending.remove(model)
