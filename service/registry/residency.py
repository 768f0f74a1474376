"""The models in memory: all of them, or those that a plugin chooses."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final, Protocol

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, DrainingError
from service import plugins
from service.registry.catalog import ServedModel
from service.registry.health import Health
from service.registry.loading import Loader, LoadFailure
from service.registry.model_cost import estimate
from service.registry.models import ModelRegistry
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics

LOADED: Final = "loaded"
FAILED: Final = "failed"


class Residency(Protocol):
    """A loader of models; lives on the event loop."""

    @property
    def on_demand(self) -> bool:
        """Whether models are loaded when calls need them; else all are in memory."""

    def check(self, bundles: Sequence[Bundle]) -> None:
        """Check that each of the bundles that a server starts with can have room; for any thread.

        Raises:
            BundleError: one cannot, or a file is missing.
            SettingsError: a pinned model is none of theirs.
        """

    async def serve(self, bundle: Bundle) -> None:
        """Serve a bundle in place of what has its name.

        Raises:
            BundleError: it cannot be loaded, or it is too large.
            DrainingError: the server shuts down.
        """

    def try_again(self, name: str) -> None:
        """Load a model at the next call, though it could not be loaded before: its files have been looked through."""

    def note_moved(self, bundle: Bundle) -> None:
        """Note where the bundle of a served model lies now."""

    async def bring(self, models: Sequence[ServedModel], held: ExitStack, size_bytes: int, client: str) -> bool:
        """Wait until all of these models are in memory, and hold them.

        Args:
            models: that a call needs.
            held: keeps them for the call.
            size_bytes: of its message.
            client: whose call it is.

        Returns:
            Whether they are held; False: one was replaced meanwhile, and the call has to choose again.

        Raises:
            DragomanError: they are not in memory in the time that a call may wait, or cannot be.
        """

    async def follow(self) -> None:
        """Have models leave that are not needed, until :meth:`close`."""

    def close(self) -> None:
        """Begin no further load; all that waits is refused."""

    async def closed(self) -> None:
        """Wait for the load that was begun, if one was."""


class AllModels:
    """All models are in memory: each is loaded before it is served."""

    on_demand = False

    def __init__(self, settings: Settings, metrics: Metrics, registry: ModelRegistry, loader: Loader) -> None:
        self._settings = settings
        self._metrics = metrics
        self._registry = registry
        self._loader = loader
        self._closed = False

    def check(self, bundles: Sequence[Bundle]) -> None:
        """Check that the files of each bundle are there, and that its slots have room."""
        for bundle in bundles:
            estimate(bundle, self._settings)

    async def serve(self, bundle: Bundle) -> None:
        """Load a bundle, and serve it in place of what has its name."""
        if self._closed:
            raise _draining()
        name, cost = bundle.manifest.name, await asyncio.to_thread(estimate, bundle, self._settings)
        for outcome in (LOADED, FAILED):  # from 0 on: Prometheus sees no increase in a counter that begins with 1
            self._metrics.model_loads_total.labels(name, outcome)
        made = await self._loader.load(bundle)
        if isinstance(made, LoadFailure):
            self._metrics.model_loads_total.labels(name, FAILED).inc()
            raise BundleError(made.why)
        loaded, grown_bytes = made
        loaded.model.cost_bytes = cost.corrected(grown_bytes).total_bytes
        self._registry.put(loaded)
        self._metrics.model_loads_total.labels(name, LOADED).inc()
        if self._closed:
            raise _draining()

    def try_again(self, name: str) -> None:
        """Do nothing: a model that cannot be loaded is not served."""

    def note_moved(self, bundle: Bundle) -> None:
        """Do nothing: the files of a model in memory are not read again."""

    async def bring(self, models: Sequence[ServedModel], held: ExitStack, size_bytes: int, client: str) -> bool:
        """Refuse a call: only those models are not in memory that ended with the server."""
        raise _draining()

    async def follow(self) -> None:
        """Do nothing: models stay."""

    def close(self) -> None:
        """Begin no further load."""
        self._closed = True

    async def closed(self) -> None:
        """Do nothing: the task that has a model served waits for its load."""


def residency_of(
    settings: Settings, metrics: Metrics, registry: ModelRegistry, health: Health, loader: Loader
) -> Residency:
    """Choose what loads models.

    Raises:
        SettingsError: models are to leave the memory, and no plugin can do that.
    """
    if not (settings.model_memory_mb or settings.keep_alive_s):
        return AllModels(settings, metrics, registry, loader)
    for make in plugins.load(plugins.RESIDENCY):
        residency: Residency = make(settings, metrics, registry, health, loader)
        return residency
    raise SettingsError(
        "DRAGOMAN_MODEL_MEMORY_MB (--model-memory-mb), DRAGOMAN_KEEP_ALIVE_S (--keep-alive-s): need a plugin that has "
        f"models leave the memory, an entry point of {plugins.RESIDENCY}"
    )


def _draining() -> DrainingError:
    return DrainingError("the server is shutting down")
