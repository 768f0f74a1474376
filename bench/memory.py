"""The memory of a process, and how it changes while work is done. Linux only."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

_INTERVAL_S: Final = 0.5


class Resident(NamedTuple):
    """Resident mebibytes at a moment on the clock of a load."""

    at_s: float
    mib: float


def resident_mib(pid: int) -> float:
    return _status_mib(pid, "VmRSS")


def peak_resident_mib(pid: int) -> float:
    return _status_mib(pid, "VmHWM")


async def watch(pid: int, now_s: Callable[[], float], seen: list[Resident]) -> None:
    """Look at a process twice a second, until cancelled."""
    while True:
        seen.append(Resident(now_s(), resident_mib(pid)))
        await asyncio.sleep(_INTERVAL_S)


def growth(work: Sequence[float], sizes: Sequence[float], per: float) -> float | None:
    """Return by how much sizes grow for an amount of work; None where there are not two samples.

    It is the slope of a line through all samples after the first tenth: by then all caches have their size.
    """
    start = int(np.searchsorted(work, work[-1] / 10)) if work else 0
    if len(work) - start < 2:
        return None
    return float(np.polyfit(work[start:], sizes[start:], 1)[0]) * per


def share_grown(seen: Sequence[Resident], from_s: float, to_s: float) -> float | None:
    """Return by which share memory grew from the second quarter of a time, when queues are full, to the last.

    It is 0.01 for one hundredth; None where a quarter was not seen.
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


def _status_mib(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(kib) / 1024
