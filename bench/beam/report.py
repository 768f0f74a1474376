"""What was found about beam search, as a Markdown table for people and as JSON with everything."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.beam.measure import Found
from bench.compare import report
from bench.compare.inprocess import describe

_HEAD = (
    "shape",
    "sentences",
    "beam size",
    "Dragoman sentences/s",
    "CTranslate2 sentences/s",
    "ratio (range)",
    "tokens a sentence",
    "equal sentences",
    "speed as a share of greedy",
    "BLEU",
    "settings",
)
_NONE = "-"


def as_markdown(found: Sequence[Found]) -> str:
    """Write a table of medians, and of the ratios of neighbouring rounds with their range.

    Where a cell has two figures, ours is the first. Tokens are those of the translation, without the end of the
    sentence. The share is one of medians, of a side's own speed at beam size 1.
    """
    greedy = {one.shape: _speeds(one) for one in found if one.beam_size == 1}
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(one, greedy.get(one.shape)) for one in found)]
    return "\n".join([report.origin(), "", *(f"| {' | '.join(cells)} |" for cells in rows)])


def as_dict(found: Sequence[Found], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything: machine, arguments, every setting that was tried, every round."""
    searches = [
        {"shape": one.shape, "beam_size": one.beam_size, "sentences": one.sentences, "bleu": one.bleu} for one in found
    ]
    return {**report.as_dict([one.outcome for one in found], arguments), "searches": searches}


def _row(one: Found, greedy: tuple[float, float] | None) -> tuple[str, ...]:
    outcome, speeds = one.outcome, _speeds(one)
    tokens = equal = shares = _NONE
    if (agreement := outcome.agreement) is not None:
        tokens = ", ".join(f"{count / agreement.sentences:.2f}" for count in agreement.target_tokens)
        equal = f"{agreement.equal / agreement.sentences:.0%}"
    if greedy is not None:
        shares = ", ".join(f"{speed / base:.2f}" for speed, base in zip(speeds, greedy, strict=True))
    return (
        one.shape,
        f"{one.sentences:,}",
        str(one.beam_size),
        *(f"{speed:.4g}" for speed in speeds),
        str(outcome.ratio),
        tokens,
        equal,
        shares,
        ", ".join(_NONE if score is None else f"{score:.2f}" for score in one.bleu),
        "; ".join(map(describe, outcome.settings)),
    )


def _speeds(one: Found) -> tuple[float, float]:
    """Return the medians of both sides, ours first, in sentences a second."""
    ours, theirs = one.outcome.figures
    return median(ours), median(theirs)
