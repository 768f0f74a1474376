"""Unloads models that no call has needed for a while; the next call that needs one loads it again."""

import asyncio
import time
from typing import Final

import structlog

from service.aio import first_of
from service.registry.catalog import ServedModel
from service.registry.models import ModelRegistry
from service.settings import Settings

_log: Final = structlog.get_logger()


class IdleModels:
    """Unloads idle models, one at a time; lives on the event loop."""

    def __init__(self, settings: Settings, registry: ModelRegistry) -> None:
        self._keep_s = settings.keep_alive_s
        self._pinned = frozenset(settings.pinned_models)
        self._registry = registry
        self._stopped = asyncio.Event()

    async def follow(self) -> None:
        """Unload models that are idle for long enough, until :meth:`stop`; returns at once if models stay loaded."""
        while self._keep_s and not self._stopped.is_set():
            for model in self._candidates():
                if self._left_s(model) <= 0:
                    _log.info("unloaded", model=model.name, idle_s=self._keep_s)
                    await self._registry.unload(model)
                    break  # calls for other models may have arrived meanwhile
            else:
                await first_of(
                    self._stopped, timeout_s=min(map(self._left_s, self._candidates()), default=self._keep_s)
                )

    def stop(self) -> None:
        """Stop unloading."""
        self._stopped.set()

    def _candidates(self) -> list[ServedModel]:
        ending = self._registry.ending
        return [each for each in self._registry.in_memory if each not in ending and each.name not in self._pinned]

    def _left_s(self, model: ServedModel) -> float:
        """Give the seconds for which a model stays loaded at least."""
        return self._keep_s if model.busy else model.last_used_s + self._keep_s - time.monotonic()
