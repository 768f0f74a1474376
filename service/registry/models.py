"""What is served now: models come and go without a call noticing; lives on the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from service.registry import allocator
from service.registry.catalog import Catalog
from service.registry.health import Health
from service.registry.loading import LoadedModel
from service.telemetry.metrics import Metrics

_LOOK_S: Final = 0.05  # between two looks whether anybody still needs an engine that is to go

_log = structlog.get_logger()


class ModelRegistry:
    """The served models, and those that were replaced and finish what runs on them.

    Attributes:
        failed: set once an engine has ended though nobody told it to: one that was serving, that is. One that had been
            replaced fails its own calls only.
    """

    def __init__(
        self, metrics: Metrics, health: Health, device: str, show: Callable[[Catalog], None], pivot_language: str = ""
    ) -> None:
        """Make a registry without models.

        Args:
            metrics: of the server.
            health: of the server, told of every change.
            device: what the models run on.
            show: has calls choose among these models from now on.
            pivot_language: see :class:`Catalog`.
        """
        self._metrics = metrics
        self._health = health
        self._device = device
        self._show = show
        self._pivot_language = pivot_language
        self._models: tuple[LoadedModel, ...] = ()  # replaced, never changed: the metrics' thread reads it
        self._retiring: set[asyncio.Task[None]] = set()
        # One thread: it has let go of the engine that it stopped before it hands the memory of it back.
        self._stopper = ThreadPoolExecutor(1, thread_name_prefix="stopper")
        self._open = False
        self._stopping = False
        self.failed = asyncio.Event()
        metrics.watch_queue(
            lambda: sum(loaded.model.mailbox.queued_segments for loaded in self._models),
            lambda: sum(loaded.model.mailbox.queued_source_tokens for loaded in self._models),
        )
        metrics.watch_backlog(
            lambda priority: sum(loaded.model.mailbox.queued_source_tokens_of(priority) for loaded in self._models),
            lambda: sum(loaded.model.mailbox.admission.drained_per_second or 0.0 for loaded in self._models),
            lambda: max((loaded.model.mailbox.admission.backlog_s for loaded in self._models), default=0.0),
        )

    @property
    def models(self) -> tuple[LoadedModel, ...]:
        """Those that are served, or will be once the registry is open."""
        return self._models

    @property
    def names(self) -> list[str]:
        """Theirs."""
        return [loaded.name for loaded in self._models]

    def step_ages_s(self) -> dict[str, float]:
        """Measure how long the current step of each model has been running; for any thread."""
        return {loaded.name: loaded.step_age_s() for loaded in self._models}

    def open(self) -> None:
        """Have calls choose among the models, from now on at every change."""
        self._open = True
        self._switch(self._models)

    def close(self) -> None:
        """Leave calls alone from now on."""
        self._open = False

    def put(self, loaded: LoadedModel) -> None:
        """Serve a model; one of its name that is served finishes what runs on it and goes."""
        asyncio.wrap_future(loaded.engine.ended).add_done_callback(lambda ended: self._note_end(loaded, ended))
        self._exchange(loaded.name, loaded)

    def withdraw(self, name: str) -> None:
        """Serve a model no more; it finishes what runs on it and goes."""
        self._exchange(name)

    async def stop(self) -> None:
        """End all engines; what runs on them fails."""
        self._stopping = True
        await asyncio.gather(*self._retiring)
        for loaded in self._models:
            await self._end(loaded)

    def _exchange(self, name: str, *new: LoadedModel) -> None:
        """Serve these in place of what has this name."""
        leaving = [loaded for loaded in self._models if loaded.name == name]
        self._switch((*(loaded for loaded in self._models if loaded.name != name), *new))
        for old in leaving:
            self._retire(old)

    def _switch(self, models: tuple[LoadedModel, ...]) -> None:
        for name in set(self.names) - {loaded.name for loaded in models}:
            self._metrics.forget_model(name)
        self._models = models
        for loaded in models:
            self._metrics.describe_model(loaded.name, loaded.model.manifest.precision, self._device)
        if self._open:
            self._show(Catalog((loaded.model for loaded in models), self._pivot_language))
            self._health.serve(self.names)

    def _retire(self, loaded: LoadedModel) -> None:
        task = asyncio.create_task(self._end_when_idle(loaded))
        self._retiring.add(task)
        self._metrics.retiring_models.inc()
        task.add_done_callback(self._retired)

    def _retired(self, task: asyncio.Task[None]) -> None:
        self._retiring.discard(task)
        self._metrics.retiring_models.dec()

    async def _end_when_idle(self, loaded: LoadedModel) -> None:
        while loaded.model.busy and not self._stopping:
            await asyncio.sleep(_LOOK_S)
        await self._end(loaded)
        _log.info("retired", model=loaded.name)
        del loaded  # the last reference: what was its memory is free from here on
        await asyncio.get_running_loop().run_in_executor(self._stopper, allocator.give_back)

    def _note_end(self, loaded: LoadedModel, ended: "asyncio.Future[None]") -> None:
        error = ended.exception()
        serving = loaded in self._models
        if error is None and (self._stopping or not serving):
            return
        _log.error("an engine ended", model=loaded.name, error=type(error).__name__)
        if serving:
            self.failed.set()

    async def _end(self, loaded: LoadedModel) -> None:
        loaded.model.close()
        await asyncio.get_running_loop().run_in_executor(self._stopper, loaded.engine.stop)
