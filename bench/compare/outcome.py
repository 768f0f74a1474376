"""What a comparison finds: two sides, each at the best of the settings that were tried, measured in turn."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final, NamedTuple

from bench.frame import Figures
from bench.machine import installed, machine, now
from bench.peers.contender import Settings
from bench.sentences import equal_sentences

_PACKAGES: Final = ("dragoman", "onnxruntime", "ctranslate2")


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
    """What came out for one part and model.

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


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Say where and with what was measured; a row of each outcome; of the file every setting tried and every round."""
    where, versions = machine(), {name: number for name in _PACKAGES if (number := installed(name))}
    return {
        "machine": f"{where['cores']} cores of {where['processor']}, {now()[:10]}",
        "versions": versions,
        "rows": [row(outcome) for outcome in outcomes],
        "details": [{**asdict(outcome), "ratio": outcome.ratio._asdict()} for outcome in outcomes],
    }


def row(outcome: Outcome) -> dict[str, str]:
    """Write an outcome, of both sides the median."""
    ours, theirs, agreement = outcome.ours, outcome.theirs, "-"
    if found := outcome.agreement:
        agreement = f"{found.equal / found.sentences:.0%}, {' and '.join(f'{n:,}' for n in found.target_tokens)}"
    return {
        "model": outcome.model,
        "part": outcome.part,
        "unit": f"{outcome.unit}, {'higher' if outcome.higher_is_better else 'lower'} is better",
        "Dragoman": f"{ours.precision}: {median(ours.figures):.4g}",
        "peer": f"{theirs.name} {theirs.precision}: {median(theirs.figures):.4g}",
        "ratio (spread)": str(outcome.ratio),
        "equal sentences, target tokens": agreement,
        "BLEU": "-" if None in outcome.bleu else " and ".join(f"{score:.1f}" for score in outcome.bleu),
        "settings": f"{describe(ours.settings)}; {describe(theirs.settings)}",
    }
