"""Keeps models and glossaries up to date with their folders."""

import asyncio
import traceback
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from dragoman.bundle import Bundle, Manifest
from dragoman.errors import DrainingError
from plugins.reload.bundle_watch import Snapshot, changed, look, taken_up
from plugins.reload.plan import Origin, gone, plan
from service.aio import first_of
from service.handlers.glossaries import Glossaries
from service.registry.folders import ModelFolders
from service.registry.health import Health
from service.registry.loading import LOADED, in_one_line
from service.registry.models import ModelRegistry
from service.registry.residency import Residency
from service.settings import Settings
from service.telemetry.metrics import Metrics

REMOVED: Final = "removed"
REFUSED: Final = "refused"
KEPT: Final = "kept"

_log = structlog.get_logger()


class LoadFailure(NamedTuple):
    """A bundle on disk that is not served.

    Attributes:
        name: the name of its model; "" if the manifest cannot be read.
        why: the reason, in one line.
    """

    name: str
    why: str


class ModelReloader(ModelFolders):
    """Loads bundles off the event loop and hands them to the registry, one reload at a time."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        memory: Residency,
        glossaries: Glossaries,
        registry: ModelRegistry,
        health: Health,
    ) -> None:
        super().__init__(settings, metrics, memory, glossaries)
        self._registry = registry
        self._health = health
        self._seen: Snapshot = {}
        self._broken: dict[Path, LoadFailure] = {}  # bundles that were not valid, or could not be loaded
        self._refused: dict[Path, LoadFailure] = {}  # these, and bundles whose name is in conflict with others
        self._origins: dict[str, Path] = {}
        self._kept: set[str] = set()
        self._bad_glossaries = 0

    async def follow(self, asked: asyncio.Event) -> None:
        """Reload everything on request, and, if the settings say so, changes on disk, until :meth:`stop`."""
        before = self._seen
        while await self._wait(asked):
            now, everything = before, asked.is_set()
            asked.clear()
            try:
                self._bad_glossaries = await asyncio.to_thread(partial(self._glossaries.refresh, everything=everything))
                now = await asyncio.to_thread(look, *self._settings.model_folders)
                if everything:
                    await self._reload(now, now.keys() | self._seen.keys())
                elif news := changed(self._seen, before, now):
                    await self._reload(now, news)
            except Exception as error:  # on any error the served models stay, and the next reload may succeed
                _log.error("a reload failed", error=in_one_line(error), at=traceback.format_tb(error.__traceback__)[-1])
            before = now

    def _paths(self) -> Collection[Path]:
        self._seen = look(*self._settings.model_folders)
        return self._seen

    async def _wait(self, asked: asyncio.Event) -> bool:
        """Wait for the next look; False after :meth:`stop`."""
        await first_of(asked, self._stopped, timeout_s=self._settings.watch_models_s or None)
        return not self._stopped.is_set()

    async def _reload(self, now: Snapshot, paths: set[Path]) -> None:
        for path in sorted(paths):
            if self._stopped.is_set():
                return
            await self._verify(path, there=path in now)
        todo = plan(self._served(), self._manifests())
        for name, path in todo.origins.items():
            if path not in todo.load:
                self._origins[name] = path
                self._memory.note_moved(self._found[path])
            if path in paths:
                self._memory.try_again(name)
        for path in todo.load:
            if self._stopped.is_set():
                return
            await self._replace(path)
        in_the_way = {path: LoadFailure(self._found[path].manifest.name, why) for path, why in todo.refuse.items()}
        self._note_refused(self._broken | in_the_way, paths)
        self._remove(gone(self._served(), self._manifests(), self._refused))
        self._seen = taken_up(self._seen, now, paths)
        errors = len(self._refused) + len(self._kept)
        self._metrics.bundle_errors.set(errors)
        self._health.agree(agree=not errors)
        _log.info("reloaded", models=self._registry.names, errors=errors + self._bad_glossaries)

    async def _verify(self, path: Path, *, there: bool) -> None:
        self._found.pop(path, None)
        self._broken.pop(path, None)
        if not there:
            return
        outcome = await asyncio.to_thread(_verified, path)
        if isinstance(outcome, Bundle):
            self._found[path] = outcome
        else:
            self._broken[path] = outcome._replace(name=outcome.name or self._name_at(path))

    async def _replace(self, path: Path) -> None:
        """Serve a bundle in place of the model of its name; keep the old model if that fails."""
        try:
            await self._serve(path)
        except DrainingError:  # the model being loaded is stopped with the others
            return
        except Exception as error:  # on any error the served model stays
            self._broken[path] = LoadFailure(self._found.pop(path).manifest.name, in_one_line(error))
        else:
            self._metrics.model_reloads_total.labels(self._found[path].manifest.name, LOADED).inc()

    async def _serve(self, path: Path) -> None:
        name = self._found[path].manifest.name
        for outcome in (LOADED, REFUSED, REMOVED, KEPT):  # from 0 on, as counters of loads
            self._metrics.model_reloads_total.labels(name, outcome)
        await super()._serve(path)
        self._origins[name] = path

    def _note_refused(self, refused: dict[Path, LoadFailure], paths: set[Path]) -> None:
        """Report refused bundles that are new, or were tried again."""
        news = [path for path, refusal in refused.items() if path in paths or refusal != self._refused.get(path)]
        self._refused = refused
        for path in news:
            name, why = refused[path]
            _log.error("a bundle was refused", path=str(path), model=name, why=why)
            self._metrics.model_reloads_total.labels(name, REFUSED).inc()
            if name:
                self._health.miss(name)

    def _remove(self, leaving: set[str]) -> None:
        """Withdraw models, unless no model would be left."""
        kept = leaving if leaving == set(self._registry.names) else set()
        for name in sorted(leaving - kept):
            del self._origins[name]
            self._registry.withdraw(name)
            self._metrics.model_reloads_total.labels(name, REMOVED).inc()
        for name in sorted(kept - self._kept):
            _log.error("the last model stays, though its bundle is gone", model=name, path=str(self._origins[name]))
            self._metrics.model_reloads_total.labels(name, KEPT).inc()
        self._kept = kept

    def _served(self) -> dict[str, Origin]:
        return {model.name: Origin(self._origins[model.name], model.manifest) for model in self._registry.served}

    def _manifests(self) -> dict[Path, Manifest]:
        return {path: bundle.manifest for path, bundle in self._found.items()}

    def _name_at(self, path: Path) -> str:
        return next((name for name, origin in self._origins.items() if origin == path), "")


def _verified(path: Path) -> Bundle | LoadFailure:
    name = ""
    try:
        name = Manifest.read(path).name
        return Bundle.open(path)
    except Exception as error:  # reading a folder during a write can raise any error
        return LoadFailure(name, in_one_line(error))
