"""What a comparison finds: two sides, each at the best of the settings that were tried, measured in turn."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final, NamedTuple

from bench.frame import Figures
from bench.machine import environment, installed, now
from bench.peers.contender import Settings

_PACKAGES: Final = ("dragoman", "onnxruntime", "ctranslate2")


@dataclass(frozen=True)
class Trial:
    settings: Settings
    figure: float


@dataclass(frozen=True)
class Side:
    """A program at its best."""

    name: str
    precision: str
    settings: Settings
    sweep: Sequence[Trial]
    figures: Sequence[float]  # [rounds]


class Ratio(NamedTuple):
    """Ours over theirs."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Outcome:
    """What came out for one part and model."""

    model: str
    part: str
    unit: str
    higher_is_better: bool
    ours: Side
    theirs: Side
    sentences: int
    # With the very same target ids on both sides; None: not looked at. In int8 each side rounds in its own way.
    equal: int | None = None
    target_tokens: Sequence[int] = ()  # of both sides, ours first; whether they did the same work
    bleu: Sequence[float | None] = (None, None)  # of both; None where there are no references, or no sacrebleu

    @property
    def ratio(self) -> Ratio:
        """Compared round by round; what disturbs the machine for longer than a round disturbs both sides."""
        ratios = [one / other for one, other in zip(self.ours.figures, self.theirs.figures, strict=True)]
        return Ratio(median(ratios), min(ratios), max(ratios))


def describe(settings: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "-"


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Say where and with what was measured; a row of each outcome; of the file every setting tried and every round."""
    where, versions = environment(), {name: number for name in _PACKAGES if (number := installed(name))}
    return {
        "machine": f"{where['cores']} cores of {where['processor']}, {now()[:10]}",
        "versions": versions,
        "rows": [row(outcome) for outcome in outcomes],
        "details": [{**asdict(outcome), "ratio": outcome.ratio._asdict()} for outcome in outcomes],
    }


def row(outcome: Outcome) -> dict[str, str]:
    """Write an outcome, of both sides the median."""
    ours, theirs, agreement = outcome.ours, outcome.theirs, "-"
    if outcome.equal is not None:
        tokens = " and ".join(f"{count:,}" for count in outcome.target_tokens)
        agreement = f"{outcome.equal / outcome.sentences:.0%}, {tokens}"
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
