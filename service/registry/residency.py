"""The models in memory: all of them, or those that a plugin chooses."""

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
    """The models in memory are all of them: each is loaded before it is served; lives on the event loop.

    A plugin has another one, which loads models when calls need them, and has them leave.
    """

    def __init__(self, settings: Settings, registry: ModelRegistry, loader: Loader) -> None:
        self._settings = settings
        self._registry = registry
        self._loader = loader
        self._closed = False

    def check(self, bundles: Sequence[Bundle]) -> None:
        """Check that each of the bundles that a server starts with can have room; for any thread.

        Raises:
            BundleError: one cannot, or a file is missing.
            SettingsError: a pinned model is none of theirs.
        """
        for bundle in bundles:
            estimate(bundle, self._settings)

    async def serve(self, bundle: Bundle) -> None:
        """Serve a bundle in place of what has its name.

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
        """Load a model at the next call, though it could not be loaded before: its files have been looked through."""

    def note_moved(self, bundle: Bundle) -> None:
        """Note where the bundle of a served model lies now: its files may be read again."""

    async def bring(self, models: Sequence[ServedModel], held: ExitStack, size_bytes: int, client: str) -> bool:
        """Wait until all of these models are in memory, and hold them.

        Returns:
            Whether they are held; False: one was replaced meanwhile, and the call has to choose again.

        Raises:
            DragomanError: they are not in memory in the time that a call may wait, or cannot be.
        """
        raise draining()  # where all are in memory, only those are not that ended with the server

    async def follow(self) -> None:
        """Have models leave that are not needed, until :meth:`close`."""

    def close(self) -> None:
        """Begin no further load; all that waits is refused."""
        self._closed = True

    async def closed(self) -> None:
        """Wait for a load that nobody else waits for."""


def residency_of(
    settings: Settings, metrics: Metrics, registry: ModelRegistry, health: Health, loader: Loader
) -> Residency:
    """Choose what loads models.

    Raises:
        SettingsError: models are to leave the memory, and no plugin can do that.
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
    """Make the error of what begins no more."""
    return DrainingError("the server is shutting down")
