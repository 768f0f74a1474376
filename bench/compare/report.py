"""What a comparison found, as a Markdown table for people and as JSON with everything."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

from bench.compare.inprocess import Outcome, describe
from bench.processor import processor

_PACKAGES = ("dragoman", "onnxruntime", "ctranslate2", "transformers", "torch")
_HEAD = "| model | part | unit | Dragoman | peer | ratio (spread) | equal sentences, target tokens | settings |"


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """A table of medians, and of the ratios of neighbouring rounds with their spread."""
    rows = [_row(outcome) for outcome in outcomes]
    machine = _machine()
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    where = f"{machine['cores']} cores of {machine['processor']}; {versions}; {machine['date'][:10]}"
    return "\n".join([f"{where}.", "", _HEAD, "|---" * (_HEAD.count("|") - 1) + "|", *rows])


def as_dict(outcomes: Sequence[Outcome], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything: machine, arguments, every setting that was tried, every round."""
    return {
        **_machine(),
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
    """How far both sides wrote the same; a dash where nobody looked."""
    found = outcome.agreement
    if found is None:
        return "-"
    ours, theirs = found.target_tokens
    return f"{found.equal / found.sentences:.0%}, {ours:,} and {theirs:,}"


def _machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {name: number for name in _PACKAGES if (number := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
