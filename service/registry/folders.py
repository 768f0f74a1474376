"""The model folders: every bundle in them is served from the start, and a plugin follows later changes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from dragoman.bundle import Bundle, Manifest, find_all_bundles, no_bundles
from dragoman.errors import BundleError
from service import plugins
from service.registry.health import Health
from service.registry.loading import FAILED, LOADED
from service.registry.models import ModelRegistry
from service.registry.residency import Residency
from service.settings import Settings
from service.telemetry.metrics import Metrics


class Followed(Protocol):
    """Other files that are read with the models: the glossaries."""

    def refresh(self, *, everything: bool = False) -> int:
        """Read new and changed files, or all; gives the number of invalid files. For any thread, one call at a time."""


class ModelFolders:
    """Serves the bundles in the folders at the start, and reads the glossaries; lives on the event loop."""

    def __init__(self, settings: Settings, metrics: Metrics, memory: Residency, glossaries: Followed) -> None:
        self._settings = settings
        self._metrics = metrics
        self._memory = memory
        self._glossaries = glossaries
        self._found: dict[Path, Bundle] = {}  # the bundles that are served, or about to be
        self._stopped = asyncio.Event()

    async def start(self, stop: asyncio.Event) -> None:
        """Serve every bundle, one after the other; returns early once `stop` is set.

        All manifests are read before the first bundle is loaded. With loading on demand, a bundle may be loaded later.

        Raises:
            BundleError: there is no bundle, or one cannot be served; the start fails, since somebody watches it.
        """
        await asyncio.to_thread(self._glossaries.refresh)
        paths = await asyncio.to_thread(self._paths)
        if not paths:
            raise no_bundles(self._settings.model_folders[0])
        for path in paths:
            if stop.is_set():
                return
            self._found[path] = await asyncio.to_thread(Bundle.listed, path)
        check_names({path: bundle.manifest for path, bundle in self._found.items()})
        await asyncio.to_thread(self._memory.check, list(self._found.values()))
        for path in sorted(self._found):
            if stop.is_set():
                return
            await self._serve(path)

    async def follow(self, asked: asyncio.Event) -> None:
        """Serve the present bundles of the folders each time `asked` is set, until :meth:`stop`; does nothing here."""

    def stop(self) -> None:
        """Begin no further load; a model that is being loaded is stopped with the registry."""
        self._stopped.set()

    def _paths(self) -> Collection[Path]:
        """List the bundles in the folders."""
        return find_all_bundles(self._settings.model_folders)

    async def _serve(self, path: Path) -> None:
        bundle = self._found[path]
        for outcome in (LOADED, FAILED):  # from 0 on: Prometheus sees no increase in a counter that begins with 1
            self._metrics.model_loads_total.labels(bundle.manifest.name, outcome)
        await self._memory.serve(bundle)


def folders_of(
    settings: Settings,
    metrics: Metrics,
    memory: Residency,
    glossaries: Followed,
    registry: ModelRegistry,
    health: Health,
) -> ModelFolders:
    """Make the object that serves the folders; where there is a plugin that follows them, the plugin makes it."""
    make: Callable[..., ModelFolders] | None = plugins.first(plugins.FOLDERS)
    if make is None:
        return ModelFolders(settings, metrics, memory, glossaries)
    return make(settings, metrics, memory, glossaries, registry, health)


def check_names(found: Mapping[Path, Manifest]) -> None:
    """Raise BundleError where several bundles have one name."""
    for name, paths in by_name(found).items():
        if len(paths) > 1:
            raise BundleError(one_name(name, paths))


def one_name(name: str, paths: Sequence[Path]) -> str:
    """Make the message about bundles of one name, with the remedy."""
    return (
        f"{len(paths)} bundles are called {name!r}: {', '.join(map(str, paths))}; "
        "export one of them with another --name, or give the folder of one with --models"
    )


def by_name(found: Mapping[Path, Manifest]) -> dict[str, list[Path]]:
    """Group the paths of bundles by the bundles' names."""
    paths = defaultdict(list)
    for path in sorted(found):
        paths[found[path].name].append(path)
    return paths
