"""What a run is asked for, and what each of its parts is given."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.gpu.budget import Clock

# Names to numbers, texts, lists of numbers, and rows of a table (a list of such); "checks" holds what was expected,
# and whether it is so.
Figures = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """What a run is asked for.

    Attributes:
        most_slots: where the doubling of slots ends.
    """

    device: str
    checkpoint: Path
    data: Path
    work: Path
    sentences: int
    steps: int
    most_slots: int
    served_slots: int
    load_s: float
    segments: int

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self), default=str))

    @classmethod
    def read(cls, file: Path) -> "Setup":
        fields = json.loads(file.read_text())
        return cls(**fields | {name: Path(fields[name]) for name in ("checkpoint", "data", "work")})


@dataclass(frozen=True)
class Task:
    """What a part is given.

    Attributes:
        note: keeps the figures found so far, in place of the last ones, should the part be ended.
    """

    setup: Setup
    size: str
    clock: Clock
    note: Callable[[Figures], None]

    @property
    def folder(self) -> Path:
        return self.setup.work / self.size


def left_out(name: str, numbers: Sequence[int]) -> str | None:
    """Name what was left out for lack of time, for people; None where nothing was."""
    return f"{name} {', '.join(map(str, sorted(numbers)))}" if numbers else None


def slot_counts(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to `most`."""
    return [2**power for power in range(most.bit_length())]
