"""How often somebody may do something: a token bucket in whole nanoseconds, with no clock of its own."""

import math
from typing import Final

NANOSECONDS: Final = 1_000_000_000


class TokenBucket:
    """A bucket of `burst` tokens that gains `rate_per_s` of them a second, full at first.

    It stores one number, the moment when it will be full again (the generic cell rate algorithm). Whole nanoseconds
    make the answer exact: who comes back after the named delay finds a token, whatever the rate.

    Args:
        rate_per_s: tokens a second, more than 0. The time between two is rounded up to whole nanoseconds.
        burst: tokens that it holds at most, at least 1.
    """

    def __init__(self, rate_per_s: float, burst: int) -> None:
        self._interval_ns = math.ceil(NANOSECONDS / rate_per_s)
        self._depth_ns = (burst - 1) * self._interval_ns
        self._full_ns: int | None = None  # None: nothing was ever taken

    def take(self, now_ns: int) -> int:
        """Take a token if there is one.

        Args:
            now_ns: the time, by a clock that never goes back.

        Returns:
            0 if a token was taken; otherwise the nanoseconds until there is one.
        """
        full_ns = now_ns if self._full_ns is None else max(self._full_ns, now_ns)
        delay_ns = full_ns - self._depth_ns - now_ns
        if delay_ns > 0:
            return delay_ns
        self._full_ns = full_ns + self._interval_ns
        return 0
