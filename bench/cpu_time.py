"""The CPU time of a command with all processes that it starts, those that outlive their parents too. Linux only."""

import os
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

_MARK: Final = "BENCH_CPU_TIME"
_INTERVAL_S: Final = 0.25
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_MIB: Final = os.sysconf("SC_PAGE_SIZE") / 2**20


class Usage(NamedTuple):
    """What processes took.

    Attributes:
        cpu_s: of all of them together, as seen four times a second.
        resident_mib: the most that they had in memory at a time; pages that they share count for each.
    """

    cpu_s: float
    resident_mib: float


class _Process(NamedTuple):
    """One process: its id and its start, which no other has, and what it took so far."""

    key: tuple[int, int]
    cpu_s: float
    resident_mib: float


def run(command: Sequence[str], *, stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None) -> Usage:
    """Run a command to its end, and add up what it took.

    Args:
        command: with its arguments.
        stdin: of it; None: ours.
        stdout: of it; None: ours.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    value = uuid.uuid4().hex  # in the environment of every process that the command starts
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, env={**os.environ, _MARK: value})
    mark = f"{_MARK}={value}".encode()
    cpu_s: dict[tuple[int, int], float] = {}
    peak_mib, code = 0.0, None
    while code is None:
        found = list(_marked(mark))
        cpu_s |= {each.key: each.cpu_s for each in found}
        peak_mib = max(peak_mib, sum(each.resident_mib for each in found))
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_INTERVAL_S)
    if code:
        raise subprocess.CalledProcessError(code, command)
    return Usage(sum(cpu_s.values()), peak_mib)


def _marked(mark: bytes) -> list[_Process]:
    return [process for folder in Path("/proc").glob("[0-9]*") if (process := _read(folder, mark))]


def _read(folder: Path, mark: bytes) -> _Process | None:
    """Look at a process; None where it is not marked, or has ended."""
    try:
        if mark not in (folder / "environ").read_bytes().split(b"\0"):
            return None
        # Behind the name, which may hold anything: proc(5) numbers them from 3.
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    user, system, start, pages = (int(fields[number - 3]) for number in (14, 15, 22, 24))
    return _Process((int(folder.name), start), (user + system) / _TICKS_PER_S, pages * _PAGE_MIB)
