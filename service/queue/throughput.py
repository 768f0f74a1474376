"""The speed of an engine, measured while it has all that it can take; the time is passed in."""

import math
from typing import Final

_MEMORY_S: Final = 2.0  # of busy time: some hundred sentences, and a slower machine shows within seconds
# After so long without busy time nothing is known any more. Else one stall could make the estimate so low that what is
# refused for it keeps the engine from ever being busy again.
_TRUST_S: Final = 30.0


class Throughput:
    """Source tokens finished a second.

    Its clock runs while every thread has its fill and segments are left over: an engine with free slots finishes
    less only because less was asked of it. Nothing is known before one such time in which as much was finished as
    was in progress at its beginning: slots that were all filled at once finish nothing for a while.

    Attributes:
        runs: whether the clock runs.
    """

    def __init__(self) -> None:
        self._ratio = DecayingRatio(_MEMORY_S)
        self.runs = False
        self._counted_s = 0.0  # until when time was counted, while the clock runs
        self._stopped_s = 0.0  # when the clock last stopped
        self._missing = 0  # source tokens to be finished until the rate is known
        self._known = False

    def start(self, source_tokens: int, now_s: float) -> None:
        """Let the clock run, from a time at which so much was in progress."""
        self._known = self._known and self._trusted(now_s)
        self.runs, self._counted_s = True, now_s
        if not self._known:
            self._ratio = DecayingRatio(_MEMORY_S)
            self._missing = source_tokens

    def stop(self, now_s: float) -> None:
        """Let the clock stand."""
        self.finish(0, now_s)
        self.runs, self._stopped_s = False, now_s

    def finish(self, source_tokens: int, now_s: float) -> None:
        """Count what was finished, if the clock runs."""
        if not self.runs:
            return
        self._ratio.add(source_tokens, now_s - self._counted_s)
        self._counted_s = now_s
        if not self._known:
            self._missing -= source_tokens
            self._known = self._missing <= 0 < source_tokens

    def per_second(self, now_s: float) -> float | None:
        """Give the source tokens per second; None where that is not known."""
        if not (self._known and self._trusted(now_s)):
            return None
        # What takes long right now counts before it has ended.
        return self._ratio.value(now_s - self._counted_s if self.runs else 0.0) or None

    def _trusted(self, now_s: float) -> bool:
        return self.runs or now_s - self._stopped_s <= _TRUST_S


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
