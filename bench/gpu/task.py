"""What a run of `bench.gpu` is asked for, and what each of its parts is given."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.frame import Figures

_MARGIN = 1.5  # times the longest round so far: what the next one may take

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """What a run is asked for."""

    device: str
    checkpoint: Path
    data: Path
    work: Path  # the folder of the models and the logs
    sentences: int = 500
    steps: int = 200
    most_slots: int = 1024  # where the doubling of slots ends
    served_slots: int = 256  # of the servers under load
    load_s: float = 15.0
    segments: int = 100_000  # that are decoded while memory is watched


@dataclass(frozen=True)
class Task:
    """What a part is given."""

    setup: Setup
    size: str
    end_s: float  # of its time, on the monotonic clock
    note: Callable[[Figures], None]  # keeps figures in place of the last ones, should the part be ended

    @property
    def folder(self) -> Path:
        return self.setup.work / self.size

    def rounds(self, of: Sequence[T]) -> Iterator[T]:
        """Yield rounds while there is time for another, if it takes about as long as the longest before it."""
        longest_s = 0.0
        for each in of:
            start_s = time.monotonic()
            if self.end_s - start_s < longest_s * _MARGIN:
                return
            yield each
            longest_s = max(longest_s, time.monotonic() - start_s)


def slot_counts(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to `most`."""
    return [2**power for power in range(most.bit_length())]


def left_out(name: str, numbers: Sequence[int]) -> str | None:
    """Name what was left out for lack of time, for people; None where nothing was."""
    return f"{name} {', '.join(map(str, sorted(numbers)))}" if numbers else None
