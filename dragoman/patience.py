"""When a call that failed is made again: after a pause, within the deadline, and only where that can help."""

from __future__ import annotations

import random
import time

from dragoman.errors import (
    ConcurrencyLimitedError,
    DragomanError,
    QueueFullError,
    RateLimitedError,
    ServerUnavailableError,
)
from dragoman.options import as_float

# How long to wait before a new call, at first; a server that names a longer time gets it.
_FIRST_PAUSE_S = 0.1
_UNAVAILABLE_FACTOR = 3.0
_BUSY_FACTOR = 2.0
_LONGEST_BUSY_S = 30.0
# What a server answers that is busy now and would take the same call later.
_BUSY = (RateLimitedError, ConcurrencyLimitedError, QueueFullError)


class Patience:
    """How long to go on with one call of a user, which may take several calls of a server."""

    def __init__(self, timeout_s: float | None, *, retries: int = 0, wait_when_busy: bool = False) -> None:
        """Start the clock.

        Args:
            timeout_s: seconds for the whole; None: as many as it takes.
            retries: how often in a row a server that is unavailable is called again.
            wait_when_busy: whether a server that is busy is called again, for as long as there is time.

        Raises:
            ValueError: no float is as large as `timeout_s`.
        """
        self._end_s = None if timeout_s is None else time.monotonic() + as_float("timeout_s", timeout_s)
        self._retries = retries
        self._wait_when_busy = wait_when_busy
        self._failures = 0
        self._busy_s = 0.0  # the last pause

    @property
    def left_s(self) -> float | None:
        """Seconds that the next call may take; None: as many as it likes."""
        return None if self._end_s is None else max(0.0, self._end_s - time.monotonic())

    def answered(self) -> None:
        """Note that the server is there and takes calls."""
        self._failures, self._busy_s = 0, 0.0

    def pause_s(self, error: DragomanError) -> float:
        """Say how long to wait before the next call.

        Raises:
            DragomanError: the given one, where no other call is to be made.
        """
        # Jitter, so that the clients of a server do not come back in step.
        if isinstance(error, _BUSY) and self._wait_when_busy:
            pause_s = self._busy_pause_s(error.retry_delay_s or 0.0) * random.uniform(1.0, 1.2)
            if (left_s := self.left_s) is not None and pause_s >= left_s:
                raise error
            return pause_s
        self._failures += 1
        if not isinstance(error, ServerUnavailableError) or self._failures > self._retries:
            raise error
        pause_s = max(_FIRST_PAUSE_S * _UNAVAILABLE_FACTOR ** (self._failures - 1), error.retry_delay_s or 0.0)
        return pause_s * random.uniform(0.8, 1.2)

    def _busy_pause_s(self, asked_s: float) -> float:
        """Compute the next pause: longer each time, and never less than the server asks for."""
        longer_s = min(max(self._busy_s * _BUSY_FACTOR, _FIRST_PAUSE_S), _LONGEST_BUSY_S)
        self._busy_s = max(longer_s, asked_s)
        return self._busy_s
