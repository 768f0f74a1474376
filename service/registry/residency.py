"""The models in memory: all models, or those that a plugin chooses."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from dragoman.bundle import Bundle
from dragoman.errors import DrainingError
from service import plugins
from service.registry.catalog import ServedModel
from service.registry.health import Health
from service.registry.loading import Loader
from service.registry.model_cost import estimate
from service.registry.models import ModelRegistry
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics


class Residency:
    """Keeps all models in memory: each is loaded before it is served; lives on the event loop.

    A plugin has another class, which loads models when calls need them, and unloads models.
    """

    def __init__(self, settings: Settings, registry: ModelRegistry, loader: Loader) -> None:
        self._settings = settings
        self._registry = registry
        self._loader = loader
        self._closed = False

    def check(self, bundles: Sequence[Bundle]) -> None:
        """Check that each bundle of the server's start can have room in memory; for any thread.

        Raises:
            BundleError: a bundle has no room, or a file is missing.
            SettingsError: a pinned model is in none of the bundles.
        """
        for bundle in bundles:
            estimate(bundle, self._settings)

    async def serve(self, bundle: Bundle) -> None:
        """Serve a bundle in place of a model of its name.

        Raises:
            BundleError: it cannot be loaded, or it is too large.
            DrainingError: the server shuts down.
        """
        if self._closed:
            raise draining()
        cost = await asyncio.to_thread(estimate, bundle, self._settings)
        self._registry.put(await self._loader.load(bundle, cost))
        if self._closed:
            raise draining()

    def try_again(self, name: str) -> None:
        """Load a model at the next call even if its last load failed: its files have been checked again since."""

    def note_moved(self, bundle: Bundle) -> None:
        """Note the new folder of a served model's bundle: its files may be read again."""

    async def bring(self, models: Sequence[ServedModel], held: ExitStack, size_bytes: int, client: str) -> bool:
        """Wait until all of these models are in memory, and hold them.

        Returns:
            Whether the models are held; False: one was replaced meanwhile, and the call has to choose again.

        Raises:
            DragomanError: a model cannot be loaded, or not in the time that a call may wait.
        """
        raise draining()  # here a model is out of memory only once the server is stopping

    async def follow(self) -> None:
        """Unload models that are not needed, until :meth:`close`."""

    def close(self) -> None:
        """Begin no further load; waiting calls are refused."""
        self._closed = True

    async def closed(self) -> None:
        """Wait for the end of a load that has begun."""


def residency_of(
    settings: Settings, metrics: Metrics, registry: ModelRegistry, health: Health, loader: Loader
) -> Residency:
    """Make the object that loads models.

    Raises:
        SettingsError: the settings ask to unload models, and no plugin can do that.
    """
    if not (settings.model_memory_mb or settings.keep_alive_s):
        return Residency(settings, registry, loader)
    make: Callable[..., Residency] | None = plugins.first(plugins.RESIDENCY)
    if make is not None:
        return make(settings, metrics, registry, health, loader)
    raise SettingsError(
        "DRAGOMAN_MODEL_MEMORY_MB (--model-memory-mb), DRAGOMAN_KEEP_ALIVE_S (--keep-alive-s): need a plugin that has "
        f"models leave the memory, an entry point of {plugins.RESIDENCY}"
    )


def draining() -> DrainingError:
    """Make the error for loads and calls that are refused because the server stops."""
    return DrainingError("the server is shutting down")
