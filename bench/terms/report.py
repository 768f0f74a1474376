"""What was found about terms, as a Markdown table for people and as JSON with everything."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.machine import machine, now
from bench.terms.measure import Found

_HEAD = (
    "terms",
    "sentences",
    "way",
    "all terms present",
    "searches that ended without",
    "terms twice",
    "BLEU",
    "CPU ms a sentence",
)


def as_markdown(found: Sequence[Found]) -> str:
    """Write a table with a row for each number of terms and way to translate."""
    where = machine()
    origin = f"{where['cores']} cores of {where['processor']}; {now()[:10]}."
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, found)]
    return "\n".join([origin, "", *(f"| {' | '.join(cells)} |" for cells in rows)])


def as_dict(found: Sequence[Found], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything: machine, arguments, every round."""
    return {
        "date": now(),
        **machine(),
        "arguments": dict(arguments),
        "found": [{**asdict(one), "way": str(one.way)} for one in found],
    }


def _row(one: Found) -> tuple[str, ...]:
    return (
        str(one.terms) if one.fits else f"{one.terms}, unfit",
        f"{one.sentences:,}",
        str(one.way),
        f"{one.with_all / one.sentences:.1%}",
        str(one.unmet) if one.way.constrained else "-",
        f"{one.twice / (one.sentences * one.terms):.1%}",
        "-" if one.bleu is None else f"{one.bleu:.2f}",
        f"{one.ms_a_sentence:.2f}",
    )
