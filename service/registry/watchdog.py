"""Notices when the engines' steps stall, and when they go on; lives on the event loop."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from service.telemetry.metrics import Metrics

_LONGEST_PAUSE_S: Final = 1.0
_LOOKS_A_TIMEOUT: Final = 4

_log = structlog.get_logger()


class Watchdog:
    """Measures at intervals how long the current step of each model has been running, and tells every change."""

    def __init__(
        self,
        step_ages_s: Callable[[], Mapping[str, float]],
        timeout_s: float,
        tell: Callable[[frozenset[str]], None],
        metrics: Metrics,
    ) -> None:
        """Make a watchdog that knows of no stalled step.

        Args:
            step_ages_s: gives the age of the oldest running step, by model; 0 where none runs.
            timeout_s: a step that takes longer has stalled.
            tell: called with the models in which a step stalls, whenever this set changes.
        """
        self._step_ages_s = step_ages_s
        self._timeout_s = timeout_s
        self._tell = tell
        self._metrics = metrics
        self._stalled: frozenset[str] = frozenset()

    async def watch(self) -> None:
        """Look until cancelled."""
        pause_s = min(self._timeout_s / _LOOKS_A_TIMEOUT, _LONGEST_PAUSE_S)
        while True:
            self.look()
            await asyncio.sleep(pause_s)

    def look(self) -> None:
        """Look once, and tell if something has changed."""
        stalled = frozenset(model for model, age_s in self._step_ages_s().items() if age_s > self._timeout_s)
        if stalled == self._stalled:
            return
        for model in sorted(stalled - self._stalled):
            self._metrics.stalled_steps_total.inc()
            _log.error("a step has stalled", model=model, timeout_s=self._timeout_s)
        for model in sorted(self._stalled - stalled):
            _log.warning("steps go on", model=model)
        self._stalled = stalled
        self._tell(stalled)
