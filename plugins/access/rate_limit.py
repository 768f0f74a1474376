"""A rate limiter: a token bucket in whole nanoseconds, without a clock of its own."""

import math
from typing import Final

NANOSECONDS: Final = 1_000_000_000


class TokenBucket:
    """A bucket of up to `burst` tokens that gains `rate_per_s` tokens per second; it starts full.

    It stores one number, the moment when it will be full again (the generic cell rate algorithm). Whole nanoseconds
    make the answer exact: a caller that returns after the given delay finds a token, whatever the rate.

    Args:
        rate_per_s: tokens per second, more than 0. The time between two tokens is rounded up to whole nanoseconds.
        burst: the capacity in tokens, at least 1.
    """

    def __init__(self, rate_per_s: float, burst: int) -> None:
        self._interval_ns = math.ceil(NANOSECONDS / rate_per_s)
        self._depth_ns = (burst - 1) * self._interval_ns
        self._full_ns: int | None = None  # None: no token was ever taken

    def take(self, now_ns: int) -> int:
        """Take a token if there is one.

        Args:
            now_ns: the time, by a monotonic clock.

        Returns:
            0 if a token was taken; otherwise the nanoseconds until the next token.
        """
        full_ns = now_ns if self._full_ns is None else max(self._full_ns, now_ns)
        delay_ns = full_ns - self._depth_ns - now_ns
        if delay_ns > 0:
            return delay_ns
        self._full_ns = full_ns + self._interval_ns
        return 0
