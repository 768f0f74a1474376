"""How much there was of one thing for each unit of another, of late; pure."""

import math


class DecayingRatio:
    """The ratio of two sums in which what is older counts for less, by the e-th part every `memory`."""

    def __init__(self, memory: float) -> None:
        """Begin with nothing seen.

        Args:
            memory: how much of the denominator back a share counts 1/e of the latest.
        """
        self._memory = memory
        self._numerator = self._denominator = 0.0

    def add(self, numerator: float, denominator: float) -> None:
        """Count an interval, over which the numerator is taken to be spread evenly."""
        self._numerator, self._denominator = self._with(numerator, denominator)

    def value(self, more: float = 0.0) -> float | None:
        """Give the ratio; None where nothing was seen.

        Args:
            more: of the denominator, since the last interval, with nothing of the numerator.
        """
        numerator, denominator = self._with(0.0, more) if more else (self._numerator, self._denominator)
        return numerator / denominator if denominator else None

    def _with(self, numerator: float, denominator: float) -> tuple[float, float]:
        kept = math.exp(-denominator / self._memory)
        weight = self._memory * (1 - kept) / denominator if denominator else 1.0
        return self._numerator * kept + numerator * weight, self._denominator * kept + denominator * weight
