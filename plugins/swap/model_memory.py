"""Which models are in memory: those that calls need; lives on the event loop.

A model is loaded when a call first needs it. With a budget, the one that was used least recently leaves
where there is no room. The call whose turn it is gets all of its models together, and no call that runs waits for
another model: so no two calls wait for each other.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import structlog

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, InternalError, InvalidRequestError, LoadingError, ModelUnavailableError
from plugins.swap import eviction
from plugins.swap.eviction import Resident
from plugins.swap.idle_models import IdleModels
from plugins.swap.model_budget import ModelBudget
from plugins.swap.model_waits import ModelWaits, Waiter
from service.registry.capacity import slots_of
from service.registry.catalog import ServedModel
from service.registry.health import Health
from service.registry.loading import Loader, in_one_line
from service.registry.model_cost import Cost, estimate
from service.registry.models import ModelRegistry
from service.registry.residency import Residency, draining
from service.settings import MEGABYTE, Settings
from service.telemetry.metrics import Metrics

_LOOK_S: Final = 0.05  # between two checks whether calls have left room
_FIRST_PAUSE_S: Final = 1.0  # before a failed model is tried again; doubled each time ...
_LONGEST_PAUSE_S: Final = 60.0  # ... up to this

_log = structlog.get_logger()


class _Source(NamedTuple):
    """The origin of a model, with its estimated cost."""

    bundle: Bundle
    cost: Cost


class _Failure(NamedTuple):
    """A failed load of a model.

    Attributes:
        times: the number of failures in a row.
        until_s: when the load may be tried again, on the clock of `time.monotonic`.
    """

    times: int
    until_s: float


class ModelMemory(Residency):
    """Loads models, one at a time, and unloads others for them."""

    def __init__(
        self, settings: Settings, metrics: Metrics, registry: ModelRegistry, health: Health, loader: Loader
    ) -> None:
        super().__init__(settings, registry, loader)
        self._metrics = metrics
        self._health = health
        self._budget = ModelBudget(settings)
        self._sources: WeakKeyDictionary[ServedModel, _Source] = WeakKeyDictionary()
        self._failures: WeakKeyDictionary[ServedModel, _Failure] = WeakKeyDictionary()
        self._idle = IdleModels(settings, registry)
        self._waits = ModelWaits(settings.queue_mb * MEGABYTE)
        self._work: asyncio.Task[None] | None = None
        metrics.model_memory_budget_bytes.set(self._budget.bytes)
        metrics.model_waiting_calls.set_function(lambda: len(self._waits))

    def check(self, bundles: Sequence[Bundle]) -> None:
        """Check that each bundle at the start of a server has room; thread-safe."""
        self._budget.check_start(
            {bundle.manifest.name: estimate(bundle, self._settings).total_bytes for bundle in bundles}
        )

    async def serve(self, bundle: Bundle) -> None:
        """Serve a bundle in place of the model of its name: load it now, or when a call needs it.

        It is loaded now if it is pinned, or if it replaces a model in memory.

        Raises:
            BundleError: the bundle cannot be loaded, is too large, or got no room within the time that a call may wait.
            DrainingError: the server is shutting down.
        """
        cost = await asyncio.to_thread(estimate, bundle, self._settings)
        slots = slots_of(bundle.manifest, self._settings)
        model = ServedModel(bundle.manifest, slots, cost_bytes=cost.total_bytes)
        costs = {other.name: other.cost_bytes for other in self._registry.served}
        self._budget.check_room(model.name, costs | {model.name: model.cost_bytes})
        self._sources[model] = _Source(bundle, cost)
        self._metrics.model_evictions_total.labels(model.name)  # from 0 on, as counters of loads
        old = self._registry.find(model.name)
        if model.name not in self._budget.pinned and not (old and old.pipeline):
            self._registry.offer(model)
            self._tell_health()
            return
        with ExitStack() as held:
            await self._wait(Waiter([model], held, is_reload=True))

    def try_again(self, name: str) -> None:
        """Load a model at the next call, although loading failed before: its files have been checked again."""
        model = self._registry.find(name)
        if model is not None and model in self._failures:
            del self._failures[model]
            self._tell_health()

    def note_moved(self, bundle: Bundle) -> None:
        """Record the current path of a served model's bundle."""
        model = self._registry.find(bundle.manifest.name)
        if model is not None:
            self._sources[model] = self._sources[model]._replace(bundle=bundle)

    async def bring(self, models: Sequence[ServedModel], held: ExitStack, size_bytes: int, client: str) -> bool:
        """Wait until all of these models are in memory, and hold them.

        Raises:
            InvalidRequestError: the models together are larger than the memory.
            QueueFullError: too many calls wait already.
            LoadingError: the models were not loaded within the time that a call may wait.
            ModelUnavailableError: a model could not be loaded.
            DrainingError: the server is shutting down.
        """
        self._budget.check_together(models, self._registry.served)
        for model in models:
            failure = self._failures.get(model)
            if failure is not None and (left_s := failure.until_s - time.monotonic()) > 0:
                raise _unavailable(model, left_s)
        self._waits.check(size_bytes)
        limit_s, began_s = self._settings.max_model_wait_s, time.monotonic()
        try:
            async with asyncio.timeout(limit_s):
                return await self._wait(Waiter(models, held, size_bytes, client=client))
        except TimeoutError:
            names = ", ".join(model.name for model in models)
            raise LoadingError(
                f"model {names} was not in memory within {limit_s:g} s: others were loaded, or in use",
                metadata={"model": names},
            ) from None
        finally:
            self._metrics.model_wait_duration_seconds.observe(time.monotonic() - began_s)

    async def follow(self) -> None:
        """Unload idle models, until :meth:`close`."""
        await self._idle.follow()

    def close(self) -> None:
        """Begin no further load, and refuse all waiting calls."""
        super().close()
        self._idle.stop()
        self._waits.refuse(draining())

    async def closed(self) -> None:
        """Wait for the current load, if there is one."""
        if self._work is not None:
            await self._work

    async def _wait(self, waiter: Waiter) -> bool:
        if self._closed:
            raise draining()
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._bring_all())
        return await self._waits.wait(waiter)

    async def _bring_all(self) -> None:
        """Load the models of the first waiter in the queue, until the queue is empty."""
        while (waiter := self._waits.first) is not None and not self._closed:
            try:
                await self._bring(waiter)
            except Exception as error:  # otherwise all waiters would wait for ever
                _log.error("models could not be brought into memory", error=in_one_line(error))
                self._waits.settle(waiter, InternalError("the server failed to load a model"))

    async def _bring(self, waiter: Waiter) -> None:
        """Load the missing models of a waiter; its loaded models stay meanwhile."""
        with ExitStack() as kept:
            for model in waiter.models:
                if model.pipeline is None and not await self._load(model, waiter):
                    return
                kept.enter_context(model.held())
                self._waits.let_in()

    async def _load(self, model: ServedModel, waiter: Waiter) -> bool:
        """Load a model when there is room for it; on a failure, the waiter gets the error."""
        try:
            if not waiter.is_reload:  # again: a model loaded meanwhile may be larger than was estimated
                self._budget.check_together(waiter.models, self._registry.served)
        except InvalidRequestError as error:
            self._waits.settle(waiter, error)
            return False
        if not await self._make_room(model, waiter):
            return False
        if not (waiter.is_reload or model in self._registry.served):
            self._waits.settle(waiter, False)
            return False
        source = self._sources[model]
        try:
            loaded = await self._loader.load(source.bundle, source.cost)
        except BundleError as error:
            self._note_failure(model, waiter, error)
            return False
        model.cost_bytes = self._budget.bounded_cost(model, loaded.cost_bytes, self._registry.served)
        model.pipeline, model.engine = loaded.pipeline, loaded.engine
        model.last_used_s = time.monotonic()
        self._registry.put(model, is_new=waiter.is_reload)
        self._failures.pop(model, None)
        self._tell_health()
        await self._shrink(model, waiter)
        return True

    async def _make_room(self, model: ServedModel, waiter: Waiter) -> bool:
        """Unload models, and wait for those in use; False if the waiter has left, or is a reload and gets no room."""
        give_up_s = time.monotonic() + self._settings.max_model_wait_s
        try:
            while self._waits.first is waiter and not self._closed:
                residents = self._residents(model, waiter)
                victims = (
                    eviction.victims(residents, model.cost_bytes, self._budget.bytes) if self._budget.bounded else []
                )
                if victims is None:
                    if waiter.is_reload and time.monotonic() >= give_up_s:  # a call has a limit of its own
                        self._waits.settle(waiter, self._no_room(model))
                        return False
                    to_free = eviction.to_free(residents, model.cost_bytes, self._budget.bytes)
                    for resident in residents:
                        resident.model.leaving = resident.model in to_free
                    self._waits.let_in()
                    await asyncio.sleep(_LOOK_S)
                elif victims:
                    await self._evict(victims[0])  # only one, since calls for the others may arrive meanwhile
                else:
                    return True
            return False
        finally:
            for each in self._registry.in_memory:
                each.leaving = False
            self._waits.let_in()

    def _no_room(self, model: ServedModel) -> BundleError:
        return BundleError(
            f"model {model.name}: there was no room for it within {self._settings.max_model_wait_s:g} s, "
            "since calls run on other models; SIGHUP tries again"
        )

    async def _shrink(self, model: ServedModel, waiter: Waiter) -> None:
        """Unload models that no longer have room, since this one is larger than was estimated."""
        while self._budget.bounded:
            victims = eviction.victims(self._residents(model, waiter), 0, self._budget.bytes)
            if not victims:  # or None: the next load makes room
                return
            await self._evict(victims[0])

    async def _evict(self, model: ServedModel) -> None:
        _log.info("evicted", model=model.name)
        self._metrics.model_evictions_total.labels(model.name).inc()
        await self._registry.unload(model)

    def _residents(self, model: ServedModel, waiter: Waiter) -> list[Resident]:
        """Describe the models in memory; the waiter's models stay, and so does a replaced one if both have room."""
        served, staying = self._registry.served, set(waiter.models)
        old = self._registry.find(model.name)
        if old is not None and old is not model:
            both = old.cost_bytes + model.cost_bytes + self._budget.pinned_bytes(served, [model])
            staying |= {old} if both <= self._budget.bytes else set()
        return [
            Resident(
                each,
                each.cost_bytes,
                pinned=each.name in self._budget.pinned or each in staying,
                in_use=each.busy or each in self._registry.ending,
                leaving=each.leaving,
                last_used_s=each.last_used_s,
                held_since_s=each.held_since_s,
            )
            for each in self._registry.in_memory
        ]

    def _note_failure(self, model: ServedModel, waiter: Waiter, error: BundleError) -> None:
        """Report to all waiters for a model that it could not be loaded."""
        if waiter.is_reload:
            self._waits.settle(waiter, error)
            return
        times = self._failures[model].times + 1 if model in self._failures else 1
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** (times - 1), _LONGEST_PAUSE_S)
        self._failures[model] = _Failure(times, time.monotonic() + pause_s)
        _log.error("a model could not be loaded", model=model.name, why=str(error), again_in_s=pause_s)
        self._tell_health()
        self._waits.refuse(_unavailable(model, pause_s), model)

    def _tell_health(self) -> None:
        self._health.unloadable(model.name for model in self._failures if model in self._registry.served)


def _unavailable(model: ServedModel, delay_s: float) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"model {model.name} could not be loaded; the server tries again in {delay_s:.1f} s",
        metadata={"model": model.name},
        retry_delay_s=delay_s,
    )
