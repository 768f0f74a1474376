"""The memory of a process: resident now, at most so far, and over time. Linux only."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_INTERVAL_S = 0.5


class Resident(NamedTuple):
    """Memory at a moment.

    Attributes:
        at_s: on the clock of the load.
        mib: resident, in mebibytes.
    """

    at_s: float
    mib: float


def resident_mib(pid: int) -> float:
    """Return the mebibytes of a process that are resident now."""
    return _status_mib(pid, "VmRSS")


def peak_resident_mib(pid: int) -> float:
    """Return the most mebibytes of a process that were ever resident."""
    return _status_mib(pid, "VmHWM")


async def watch(pid: int, now_s: Callable[[], float], seen: list[Resident]) -> None:
    """Look at a process twice a second, until cancelled."""
    while True:
        seen.append(Resident(now_s(), resident_mib(pid)))
        await asyncio.sleep(_INTERVAL_S)


def _status_mib(pid: int, field: str) -> float:
    """Read a size in kB from the status of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(kib) / 1024
