"""The two ways to put a load on a server: open, which does not wait for it, and closed, which does."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A refused client waits a little: without this, a dead server is asked as fast as it refuses.
PAUSE_AFTER_ERROR_S = 0.05


# Sends the next request, which is or was due at that second; returns, when it ended, if it succeeded.
Send = Callable[[float], Coroutine[Any, Any, bool]]


def poisson_arrivals(rate: float, duration_s: float, seed: int) -> NDArray[np.float64]:
    """Draw the arrivals of a Poisson process, perhaps none: [arrivals] seconds since the start, ascending."""
    random = np.random.default_rng(seed)
    # Given their number, the arrivals of a Poisson process are uniform in the interval.
    count = random.poisson(rate * duration_s)
    # Below 1 times the duration can still round up to the duration itself.
    last = np.nextafter(duration_s, 0.0)
    return np.minimum(np.sort(random.random(count)) * duration_s, last)


@dataclass(frozen=True)
class OpenLoop:
    """Sends a request at each arrival, however many are unanswered, as users do who do not know of each other."""

    arrivals_s: NDArray[np.float64]  # [requests] when each is due, in seconds since the start, ascending

    async def run(self, send: Send, now_s: Callable[[], float]) -> None:
        """Return when all requests have ended.

        When this loop is late, on a busy machine, it catches up at once: no arrival is dropped or moved.
        """
        async with asyncio.TaskGroup() as group:
            for due_s in self.arrivals_s.tolist():
                if (wait_s := due_s - now_s()) > 0:
                    await asyncio.sleep(wait_s)
                group.create_task(send(due_s))

    def offered_rate(self, from_s: float, to_s: float) -> float:
        """Return the requests due per second in [from_s, to_s)."""
        due = (self.arrivals_s >= from_s) & (self.arrivals_s < to_s)
        return float(due.sum() / (to_s - from_s)) if to_s > from_s else 0.0


@dataclass(frozen=True)
class ClosedLoop:
    """Sends a request when the one before is answered, as a number of patient users do."""

    concurrency: int
    warmup_s: float  # requests sent before this moment are not counted in `requests`
    end_s: float  # no request is sent from this moment on; infinite where `requests` ends the loop
    requests: int | None  # how many requests to send after the warm-up; None where `end_s` ends the loop

    async def run(self, send: Send, now_s: Callable[[], float]) -> None:
        left = self.requests

        def takes_request(at_s: float) -> bool:
            nonlocal left
            if left is None or at_s < self.warmup_s:
                return at_s < self.end_s
            left -= 1
            return left >= 0

        async def client() -> None:
            while takes_request(due_s := now_s()):
                if not await send(due_s):
                    await asyncio.sleep(PAUSE_AFTER_ERROR_S)

        async with asyncio.TaskGroup() as group:
            for _ in range(self.concurrency):
                group.create_task(client())
