"""The arithmetic of a comparison: the best of a sweep, ratios of figures taken in turn, the fastest candidate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Trial:
    """One choice of settings and what it gave."""

    settings: dict[str, object]
    figure: float


def best_of(trials: Sequence[Trial], *, higher_is_better: bool) -> Trial:
    return (max if higher_is_better else min)(trials, key=lambda trial: trial.figure)


@dataclass(frozen=True)
class Ratio:
    """Ours over theirs, of figures that were taken in turn."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> "Ratio":
        """Compare round by round; what disturbs the machine for longer than a round disturbs both sides.

        Args:
            ours: [rounds].
            theirs: [rounds], none zero.
        """
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        return cls(median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def survivors(
    candidates: Sequence[T], holds: Callable[[T, float], bool], rate: float, growth: float
) -> tuple[T, float]:
    """Find the candidate that holds the highest rate of a ladder, and the highest rate that it held.

    All start at `rate`; each rung is `growth` times the one before, and a candidate that fails a rung leaves. Where
    none holds the first rung, the ladder goes down until one does, and ends there.

    Args:
        holds: whether a candidate holds a rate; each must hold some.
    """
    left, step = [candidate for candidate in candidates if holds(candidate, rate)], growth
    if not left:
        left, step = list(candidates), 1 / growth
    while True:
        rate *= step
        holding = [candidate for candidate in left if holds(candidate, rate)]
        if step < 1 and holding:
            return holding[0], rate
        if step > 1 and not holding:
            return left[0], rate / step
        left = holding or left
