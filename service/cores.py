"""The number of CPU cores that this process may use, by its affinity and the CPU quotas of its control groups."""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

_GROUPS: Final = Path("/proc/self/cgroup")
_ROOT: Final = Path("/sys/fs/cgroup")


def available() -> int:
    """Count the cores, at least 1: a container that may use 2 cores of a machine of 64 has 2."""
    return max(1, math.ceil(min(_allowed(), cpu_quota(_GROUPS, _ROOT))))


def cpu_quota(groups: Path, root: Path) -> float:
    """Find how many cores the control groups of a process allow: the smallest quota from its group up to the root.

    Args:
        groups: a file like `/proc/self/cgroup`, with a line `hierarchy:controllers:path` for each hierarchy.
        root: the folder in which the hierarchies are mounted. Where a container sees only its own part of them, the
            path does not exist there, and the root itself holds the container's quota.

    Returns:
        The quota in cores, such as 1.5; infinity where there is none, or no control groups at all.
    """
    lines = (line.split(":", 2) for line in _read(groups).splitlines())
    quotas: list[float] = []
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if not controllers:  # version 2 has one hierarchy, whose line names no controllers
            for folder in _upwards(root, path):
                work, _, period = _read(folder / "cpu.max").strip().partition(" ")
                quotas.append(_ratio(work, period or "100000"))
        elif "cpu" in controllers.split(","):
            quotas += [
                _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
                for folder in _upwards(root / "cpu", path)
            ]
    return min(quotas, default=math.inf)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a group and of each group around it, the root last."""
    inside = PurePosixPath(path.lstrip("/"))
    if ".." not in inside.parts:  # else the container cannot see the group
        yield from (root / part for part in (inside, *inside.parents) if part != PurePosixPath("."))
    yield root


def _ratio(work: str, period: str) -> float:
    """Divide the microseconds of work by those of a period; `max` and -1 are no limit."""
    work, period = work.strip(), period.strip()
    if work.isdecimal() and period.isdecimal() and int(work) and int(period):
        return int(work) / int(period)
    return math.inf


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _allowed() -> int:
    if hasattr(os, "sched_getaffinity"):  # not everywhere; it honours taskset and cpusets
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
