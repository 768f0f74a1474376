"""How the time of a run is shared among its parts, and that of a part among its rounds."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

_MARGIN = 1.5  # times the longest round so far: what the next one may take

T = TypeVar("T")


def limit_s(left_s: float, shares: Sequence[float]) -> float:
    """Return the seconds that the next part may take: what the parts before it have left over goes to all that follow.

    Args:
        shares: of the next part and of all behind it, in any unit.
    """
    return max(left_s, 0.0) * shares[0] / sum(shares)


@dataclass(frozen=True)
class Clock:
    """The end of a stretch of time."""

    end_s: float

    @classmethod
    def of(cls, seconds: float) -> "Clock":
        """Make a clock that ends in this number of seconds."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds until the end, negative behind it."""
        return self.end_s - time.monotonic()

    def rounds(self, of: Sequence[T]) -> Iterator[T]:
        """Yield rounds while there is time for another, if it takes about as long as the longest before it."""
        longest_s = 0.0
        for each in of:
            start_s = time.monotonic()
            if self.end_s - start_s < longest_s * _MARGIN:
                return
            yield each
            longest_s = max(longest_s, time.monotonic() - start_s)
