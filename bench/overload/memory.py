"""The memory of a server while it is loaded. Linux only."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bench.resident import resident_mib

_INTERVAL_S = 0.5


class Resident(NamedTuple):
    """Memory at a moment.

    Attributes:
        at_s: on the clock of the load.
        mib: resident, in mebibytes.
    """

    at_s: float
    mib: float


async def watch(pid: int, now_s: Callable[[], float], seen: list[Resident]) -> None:
    """Look at a process twice a second, until cancelled."""
    while True:
        seen.append(Resident(now_s(), resident_mib(pid)))
        await asyncio.sleep(_INTERVAL_S)


def growth(seen: Sequence[Resident], from_s: float, to_s: float) -> float | None:
    """By which share memory grew in a time, once it had settled.

    The queue and what waits in it fill up first, so the second quarter of the time is held against the last one, the
    mean of each.

    Args:
        seen: moments, in order.
        from_s: when the time begins.
        to_s: when it ends.

    Returns:
        0.01 for one hundredth; None where a quarter was not seen.
    """
    quarter_s = (to_s - from_s) / 4
    quarters = [
        [moment.mib for moment in seen if begin_s <= moment.at_s < begin_s + quarter_s]
        for begin_s in (from_s + quarter_s, to_s - quarter_s)
    ]
    if not all(quarters):
        return None
    before, after = (float(np.mean(mib)) for mib in quarters)
    return after / before - 1
