"""What a comparison found, as a Markdown table for people and as JSON with everything."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.compare.inprocess import Outcome, describe
from bench.frame import table
from bench.machine import installed, machine, now

_PACKAGES = ("dragoman", "onnxruntime", "ctranslate2", "transformers", "torch")


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """Write a table of medians, and of the ratios of neighbouring rounds with their spread."""
    return "\n".join([origin(), "", *table(rows(outcomes))])


def origin() -> str:
    """Say in a line on what machine, with what versions and when figures were taken."""
    where = _where()
    versions = ", ".join(f"{name} {number}" for name, number in where["versions"].items())
    return f"{where['cores']} cores of {where['processor']}; {versions}; {where['date'][:10]}."


def as_dict(outcomes: Sequence[Outcome], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything: machine, arguments, every setting that was tried, every round."""
    return {
        **_where(),
        "arguments": dict(arguments),
        "outcomes": outcomes_as_dicts(outcomes),
    }


def outcomes_as_dicts(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return every setting that was tried, and every round."""
    return [{**asdict(outcome), "ratio": asdict(outcome.ratio)} for outcome in outcomes]


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    """Make a row of each outcome: of both sides the median."""
    return [_row(outcome) for outcome in outcomes]


def _row(outcome: Outcome) -> dict[str, str]:
    ours, theirs = (f"{median(figures):.4g}" for figures in outcome.figures)
    better = "higher" if outcome.higher_is_better else "lower"
    return {
        "model": outcome.model,
        "part": outcome.part,
        "unit": f"{outcome.unit}, {better} is better",
        "Dragoman": f"{outcome.precisions[0]}: {ours}",
        "peer": f"{outcome.names[1]} {outcome.precisions[1]}: {theirs}",
        "ratio (spread)": str(outcome.ratio),
        "equal sentences, target tokens": _agreement(outcome),
        "BLEU": "-" if None in outcome.bleu else " and ".join(f"{score:.1f}" for score in outcome.bleu),
        "settings": "; ".join(map(describe, outcome.settings)),
    }


def _agreement(outcome: Outcome) -> str:
    """Say how far both sides wrote the same; a dash where they were not compared."""
    found = outcome.agreement
    if found is None:
        return "-"
    ours, theirs = found.target_tokens
    return f"{found.equal / found.sentences:.0%}, {ours:,} and {theirs:,}"


def _where() -> dict[str, Any]:
    return {
        "date": now(),
        **machine(),
        "versions": {name: number for name in _PACKAGES if (number := installed(name))},
    }
