"""What a comparison found: rows for people, and every round for the file."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median

from bench.compare.outcome import Outcome, describe
from bench.frame import Figures
from bench.machine import installed, machine, now

_PACKAGES = ("dragoman", "onnxruntime", "ctranslate2", "transformers", "torch")


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Say where and with what was measured; a row of each outcome; of the file every setting tried and every round."""
    where, versions = machine(), {name: number for name in _PACKAGES if (number := installed(name))}
    return {
        "machine": f"{where['cores']} cores of {where['processor']}, {now()[:10]}",
        "versions": versions,
        "rows": rows(outcomes),
        "details": details(outcomes),
    }


def details(outcomes: Sequence[Outcome]) -> list[Figures]:
    """Return every setting that was tried, and every round."""
    return [{**asdict(outcome), "ratio": outcome.ratio._asdict()} for outcome in outcomes]


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    """Make a row of each outcome: of both sides the median."""
    return [_row(outcome) for outcome in outcomes]


def _row(outcome: Outcome) -> dict[str, str]:
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
