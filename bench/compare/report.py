"""What a comparison found, as a Markdown table for people and as JSON with everything."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.compare.inprocess import Outcome, describe
from bench.machine import installed, machine, now

_PACKAGES = ("dragoman", "onnxruntime", "ctranslate2", "transformers", "torch")
_HEAD = "| model | part | unit | Dragoman | peer | ratio (spread) | equal sentences, target tokens | settings |"


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """Write a table of medians, and of the ratios of neighbouring rounds with their spread."""
    rows = [_row(outcome) for outcome in outcomes]
    return "\n".join([origin(), "", _HEAD, "|---" * (_HEAD.count("|") - 1) + "|", *rows])


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
        "outcomes": [{**asdict(outcome), "ratio": asdict(outcome.ratio)} for outcome in outcomes],
    }


def _row(outcome: Outcome) -> str:
    ours, theirs = (f"{median(figures):.4g}" for figures in outcome.figures)
    peer = f"{outcome.names[1]} {outcome.precisions[1]}: {theirs}"
    settings = "; ".join(map(describe, outcome.settings))
    better = "higher" if outcome.higher_is_better else "lower"
    unit = f"{outcome.unit}, {better} is better"
    ours = f"{outcome.precisions[0]}: {ours}"
    cells = [outcome.model, outcome.part, unit, ours, peer, str(outcome.ratio), _agreement(outcome), settings]
    return f"| {' | '.join(cells)} |"


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
