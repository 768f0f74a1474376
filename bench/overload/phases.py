"""The parts of one load whose rate changes: when its requests are due, and what became of those of each part. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.load.loops import poisson_arrivals
from bench.load.samples import Table

# A server has recovered when it answers nine of ten requests of a second in time: at a steady load it is 19 of 20.
_RECOVERED_SHARE, _WINDOW_S, _STRIDE_S = 0.9, 1.0, 0.1


@dataclass(frozen=True)
class Phase:
    name: str
    rate: float
    from_s: float
    to_s: float

    @property
    def duration_s(self) -> float:
        return self.to_s - self.from_s


def in_a_row(parts: Sequence[tuple[str, float, float]]) -> list[Phase]:
    """Make phases that follow each other, from name, rate and seconds of each."""
    ends = np.cumsum([seconds for _, _, seconds in parts]).tolist()
    return [Phase(name, rate, end_s - seconds, end_s) for (name, rate, seconds), end_s in zip(parts, ends, strict=True)]


def arrivals(phases: Sequence[Phase], seed: int) -> NDArray[np.float64]:
    """Draw [requests] when each is due: in each phase a Poisson process."""
    drawn = [
        phase.from_s + poisson_arrivals(phase.rate, phase.duration_s, seed + number)
        for number, phase in enumerate(phases)
    ]
    return np.concatenate(drawn)


def due_in(table: Table, phase: Phase) -> Table:
    return table.only((table.due_s >= phase.from_s) & (table.due_s < phase.to_s))


def answers_per_second(table: Table, phase: Phase) -> float:
    """Count the answers a second that came in a phase, whenever they were due."""
    came = table.answered & (table.ended_s >= phase.from_s) & (table.ended_s < phase.to_s)
    return float(came.sum()) / phase.duration_s


def p95_ms(table: Table) -> float | None:
    """Return the p95 of the latency of answered requests; None where none was answered."""
    return float(np.percentile(table.latency_ms, 95)) if table.answered.any() else None


def recovery_s(table: Table, end_s: float, bound_ms: float) -> float | None:
    """Find how many seconds after a storm the server is as it was before; None where it is not again.

    Then, for a second, nine of ten requests are answered within the bound, the p95 of a steady load.
    """
    good = table.answered & ((table.ended_s - table.due_s) * 1e3 <= bound_ms)
    last_s = float(table.due_s.max(initial=0.0)) - end_s - _WINDOW_S
    for after_s in np.arange(0.0, last_s + _STRIDE_S, _STRIDE_S).tolist():
        due = (table.due_s >= end_s + after_s) & (table.due_s < end_s + after_s + _WINDOW_S)
        if due.any() and good[due].mean() >= _RECOVERED_SHARE:
            return float(after_s)
    return None
