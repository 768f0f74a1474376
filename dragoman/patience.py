"""The rules for repeating a failed call: after a pause, within the deadline, and only if a repetition can help."""

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

# The first pause before a new call; if the server names a longer time, the pause is that long.
_FIRST_PAUSE_S = 0.1
_AWAY_FACTOR = 3.0
_AWAY_STEPS = 3  # from the first pause to the longest one
_LONGEST_AWAY_S = 1.0
# How long to wait for a server that is away, in a call without a deadline: restarts and failovers take less.
_AWAY_TIMEOUT_S = 60.0
_LONGEST_CALL_S = 1e9  # gRPC takes a much longer deadline for one that has passed
_BUSY_FACTOR = 2.0
_LONGEST_BUSY_S = 30.0
# Errors of a busy server, which could accept the same call later.
_BUSY = (RateLimitedError, ConcurrencyLimitedError, QueueFullError)


class Patience:
    """Decides how long to continue one call of the user, which may take several calls of a server."""

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
            timeout_s: seconds for all calls together; None: no limit.
            retries: how often in a row a server that has never answered is called again; 0: never.
            wait_when_busy: whether a busy server is called again until the deadline.
            is_known: whether the server has answered before; a known server is called again until the deadline.

        Raises:
            TypeError: as :func:`checked_timeout_s`.
            ValueError: as :func:`checked_timeout_s`.
        """
        self._end_s = None if timeout_s is None else time.monotonic() + checked_timeout_s(timeout_s)
        self._retries = retries
        self._wait_when_busy = wait_when_busy
        self._is_known = is_known
        self._failures = 0
        self._away_since_s = 0.0
        self._busy_s = 0.0  # the last pause for a busy server

    @property
    def left_s(self) -> float | None:
        """Seconds left for the next call; None: no limit."""
        return None if self._end_s is None else min(max(0.0, self._end_s - time.monotonic()), _LONGEST_CALL_S)

    def answered(self) -> None:
        """Note that the server answers and takes calls."""
        self._failures, self._busy_s, self._is_known = 0, 0.0, True

    def pause_s(self, error: DragomanError) -> float:
        """Compute the pause before the next call.

        Raises:
            DragomanError: the given error, if no other call is to be made.
        """
        # Jitter keeps the clients of a server from returning at the same moment.
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
        """Compute the next pause for a busy server: longer each time, and at least as long as the server asks."""
        longer_s = min(max(self._busy_s * _BUSY_FACTOR, _FIRST_PAUSE_S), _LONGEST_BUSY_S)
        self._busy_s = max(longer_s, asked_s)
        return self._busy_s

    def _away_pause_s(self, error: DragomanError) -> float:
        """Compute the next pause for a server that is away; raises the error when the waiting is over."""
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
        # A draining server names a time, but another server may be available earlier.
        return pause_s if isinstance(error, DrainingError) else max(pause_s, error.retry_delay_s or 0.0)


def checked_timeout_s(timeout_s: float) -> float:
    """Check a number of seconds and make it a float.

    Raises:
        TypeError: the argument is no number.
        ValueError: the number is negative, or too large for a float.
    """
    if not isinstance(timeout_s, Real):
        raise TypeError(f"timeout_s: must be float, is {type(timeout_s).__name__}")
    if not timeout_s >= 0:
        raise ValueError(f"timeout_s must be 0 or more, is {timeout_s}")
    return as_float("timeout_s", timeout_s)


def lost_call(error: DragomanError) -> DragomanError:
    """Read an error that can mean a lost server as ServerUnavailableError; any other error is returned unchanged.

    gRPC answers CANCELLED to a call that arrives while a server stops (grpc/grpc#41785), and grpc.aio makes INTERNAL of
    any status if the call ends during a write (grpc/grpc#36066). If the server was not lost, the next call shows the
    real error.
    """
    of_grpc = isinstance(error.__cause__, grpc.RpcError) and not error.request_id  # our servers set a request id
    if of_grpc and error.code in (grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL):
        return ServerUnavailableError(f"the call broke off: {error.message}")
    return error
