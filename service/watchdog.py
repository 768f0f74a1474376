"""Notices when the engines' steps stall, and when they go on; lives on the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from service.metrics import Metrics

_LONGEST_PAUSE_S: Final = 1.0
_LOOKS_A_TIMEOUT: Final = 4

_log = structlog.get_logger()


class Watchdog:
    """Looks again and again how long the current step has been running, and tells of every change."""

    def __init__(
        self,
        step_age_s: Callable[[], float],
        timeout_s: float,
        tell: Callable[[bool], Awaitable[None]],
        metrics: Metrics,
    ) -> None:
        """A watchdog that believes that all is well.

        Args:
            step_age_s: how long the oldest step that runs has been running; 0 where none runs.
            timeout_s: a step that takes longer has stalled.
            tell: called with True when a step has stalled, with False when none is stalled any more.
            metrics: of the server.
        """
        self._step_age_s = step_age_s
        self._timeout_s = timeout_s
        self._tell = tell
        self._metrics = metrics
        self._stalled = False

    async def watch(self) -> None:
        """Look until cancelled."""
        pause_s = min(self._timeout_s / _LOOKS_A_TIMEOUT, _LONGEST_PAUSE_S)
        while True:
            await self.look()
            await asyncio.sleep(pause_s)

    async def look(self) -> None:
        """Look once, and tell if something has changed."""
        stalled = self._step_age_s() > self._timeout_s
        if stalled == self._stalled:
            return
        self._stalled = stalled
        if stalled:
            self._metrics.stalled_steps_total.inc()
            _log.error("a step has stalled", timeout_s=self._timeout_s)
        else:
            _log.warning("steps go on")
        await self._tell(stalled)
