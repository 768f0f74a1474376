"""What a comparison finds: two sides, each at the best of the settings that were tried, measured in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from bench.peers.contender import Settings
from bench.sentences import equal_sentences


@dataclass(frozen=True)
class Trial:
    """One choice of settings and what it gave."""

    settings: Settings
    figure: float


@dataclass(frozen=True)
class Side:
    """A program at its best.

    Attributes:
        figures: [rounds].
    """

    name: str
    precision: str
    settings: Settings
    sweep: Sequence[Trial]
    figures: Sequence[float]


@dataclass(frozen=True)
class Agreement:
    """Whether two sides did the same work; in int8 each rounds in its own way.

    Attributes:
        equal: of them with the very same target ids.
        target_tokens: of the two sides, ours first.
    """

    sentences: int
    equal: int
    target_tokens: tuple[int, int]

    @classmethod
    def of(cls, ours: Sequence[list[int]], theirs: Sequence[list[int]]) -> "Agreement":
        return cls(len(ours), equal_sentences(ours, theirs), (sum(map(len, ours)), sum(map(len, theirs))))


class Ratio(NamedTuple):
    """Ours over theirs."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Outcome:
    """What came out for one part, model and peer.

    Attributes:
        agreement: of what they translated; None where that was not looked at.
        bleu: of both; None where there are no references, or no sacrebleu.
    """

    model: str
    part: str
    unit: str
    higher_is_better: bool
    ours: Side
    theirs: Side
    agreement: Agreement | None = None
    bleu: Sequence[float | None] = (None, None)

    @property
    def ratio(self) -> Ratio:
        """Compared round by round; what disturbs the machine for longer than a round disturbs both sides."""
        ratios = [one / other for one, other in zip(self.ours.figures, self.theirs.figures, strict=True)]
        return Ratio(median(ratios), min(ratios), max(ratios))


def describe(settings: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "-"
