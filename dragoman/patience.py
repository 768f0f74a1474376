"""When a call that failed is made again: after a pause, within the deadline, and only where that can help."""

from __future__ import annotations

import random
import time
from numbers import Real

import grpc

from dragoman.errors import (
    ConcurrencyLimitedError,
    DragomanError,
    DrainingError,
    LoadingError,
    ModelUnavailableError,
    QueueFullError,
    RateLimitedError,
    ServerUnavailableError,
)
from dragoman.options import as_float

# How long to wait before a new call, at first; a server that names a longer time gets it.
_FIRST_PAUSE_S = 0.1
_AWAY_FACTOR = 3.0
_AWAY_STEPS = 3  # to the longest
_LONGEST_AWAY_S = 1.0
# For a server that is away, where a call has no deadline: restarts and failovers take less.
_AWAY_TIMEOUT_S = 60.0
_BUSY_FACTOR = 2.0
_LONGEST_BUSY_S = 30.0
# What a server answers that is busy now and would take the same call later.
_BUSY = (RateLimitedError, ConcurrencyLimitedError, QueueFullError)


class Patience:
    """How long to go on with one call of a user, which may take several calls of a server."""

    def __init__(
        self,
        timeout_s: float | None,
        *,
        retries: int = 0,
        wait_when_busy: bool = False,
        is_known: bool = False,
    ) -> None:
        """Start the clock.

        Args:
            timeout_s: seconds for the whole; None: as many as it takes.
            retries: how often in a row a server is called again that has never answered; with 0 none is.
            wait_when_busy: whether a server that is busy is called again, for as long as there is time.
            is_known: whether the server has answered before: then it is waited for, for as long as there is time.

        Raises:
            TypeError: as :func:`checked_timeout_s`.
            ValueError: likewise.
        """
        self._end_s = None if timeout_s is None else time.monotonic() + checked_timeout_s(timeout_s)
        self._retries = retries
        self._wait_when_busy = wait_when_busy
        self._is_known = is_known
        self._failures = 0
        self._away_since_s = 0.0
        self._busy_s = 0.0  # the last pause

    @property
    def left_s(self) -> float | None:
        """Seconds that the next call may take; None: as many as it likes."""
        return None if self._end_s is None else max(0.0, self._end_s - time.monotonic())

    def answered(self) -> None:
        """Note that the server is there and takes calls."""
        self._failures, self._busy_s, self._is_known = 0, 0.0, True

    def pause_s(self, error: DragomanError) -> float:
        """Say how long to wait before the next call.

        Raises:
            DragomanError: the given one, where no other call is to be made.
        """
        # Jitter, so that the clients of a server do not come back in step.
        if isinstance(error, _BUSY) and self._wait_when_busy:
            pause_s = self._busy_pause_s(error.retry_delay_s or 0.0) * random.uniform(1.0, 1.2)
        elif self._retries and isinstance(lost_call(error), ServerUnavailableError):
            pause_s = self._away_pause_s(error) * random.uniform(0.8, 1.2)
        else:
            raise error
        if (left_s := self.left_s) is not None and pause_s >= left_s:
            raise error
        return pause_s

    def _busy_pause_s(self, asked_s: float) -> float:
        """Compute the next pause: longer each time, and never less than the server asks for."""
        longer_s = min(max(self._busy_s * _BUSY_FACTOR, _FIRST_PAUSE_S), _LONGEST_BUSY_S)
        self._busy_s = max(longer_s, asked_s)
        return self._busy_s

    def _away_pause_s(self, error: DragomanError) -> float:
        """Compute the next pause; raises the error where the server is not waited for any longer."""
        now_s = time.monotonic()
        if not self._failures:
            self._away_since_s = now_s
        self._failures += 1
        comes_back = self._is_known and not isinstance(error, ModelUnavailableError)
        if comes_back or isinstance(error, LoadingError):
            if self._end_s is None and now_s - self._away_since_s > _AWAY_TIMEOUT_S:
                raise error
        elif self._failures > self._retries:
            raise error
        pause_s = min(_FIRST_PAUSE_S * _AWAY_FACTOR ** min(self._failures - 1, _AWAY_STEPS), _LONGEST_AWAY_S)
        # One that drains asks for time, but another may be there.
        return pause_s if isinstance(error, DrainingError) else max(pause_s, error.retry_delay_s or 0.0)


def checked_timeout_s(timeout_s: float) -> float:
    """Read a number of seconds.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative, or no float is as large.
    """
    if not isinstance(timeout_s, Real):
        raise TypeError(f"timeout_s: must be float, is {type(timeout_s).__name__}")
    if not timeout_s >= 0:
        raise ValueError(f"timeout_s must be 0 or more, is {timeout_s}")
    return as_float("timeout_s", timeout_s)


def lost_call(error: DragomanError) -> DragomanError:
    """Read the error of a call whose server is lost, though its status may not say so; any other stays as it is.

    CANCELLED is what gRPC answers to a call that arrives as a server stops (grpc/grpc#41785), and INTERNAL what
    grpc.aio makes of any status where the call ends during a write (grpc/grpc#36066): the next call tells what it was,
    if it was not the server's end.
    """
    of_grpc = isinstance(error.__cause__, grpc.RpcError) and not error.request_id  # a server of ours names the request
    if of_grpc and error.code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL):
        return ServerUnavailableError(f"the call broke off: {error.message}")
    return error
