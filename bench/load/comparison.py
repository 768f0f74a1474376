"""Two reports of load tests against each other: every figure with a verdict."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

# Two runs of the same program differ by a few hundredths.
SAME = 0.05
# They differ between any two runs, or say only where a report was written.
_OF_NO_INTEREST = {"json", "html", "slo"}

Verdict = Literal["better", "worse", "same", "not comparable"]


class _Figure(NamedTuple):
    field: str
    name: str
    unit: str
    less_is_better: bool


FIGURES = (
    _Figure("highest_rate", "highest rate", "/s", False),
    _Figure("p50_e2el_ms", "latency p50", "ms", True),
    _Figure("p95_e2el_ms", "latency p95", "ms", True),
    _Figure("p99_e2el_ms", "latency p99", "ms", True),
    _Figure("max_e2el_ms", "latency max", "ms", True),
    _Figure("p95_ttft_ms", "first text p95", "ms", True),
    _Figure("request_throughput", "achieved rate", "/s", False),
    _Figure("request_goodput", "goodput", "/s", False),
    _Figure("sentence_throughput", "sentences", "/s", False),
    _Figure("output_throughput", "target tokens", "/s", False),
    _Figure("error_rate", "not answered", "", True),
    _Figure("p95_send_delay_ms", "generator's lateness p95", "ms", True),
)


class Row(NamedTuple):
    """One figure of both runs.

    Attributes:
        ratio: second over first; None where the first is 0, or where the runs cannot be compared.
    """

    name: str
    unit: str
    before: float
    after: float
    ratio: float | None
    verdict: Verdict


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Row]:
    rows = [
        _row(figure, before[figure.field], after[figure.field])
        for figure in FIGURES
        if before.get(figure.field) is not None and after.get(figure.field) is not None
    ]
    if _same_loop(before, after):
        return rows
    return [row._replace(ratio=None, verdict="not comparable") for row in rows]


def _same_loop(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether both are closed loops, or neither is; the steps of a ramp are open loops.

    In a closed loop no request waits to be sent and the rate is what the server can do; in an open one it is given.
    """
    modes = {before["mode"], after["mode"]}
    return "closed" not in modes or modes == {"closed"}


def _row(figure: _Figure, before: float, after: float) -> Row:
    if not before:
        verdict: Verdict = "same" if not after else "worse" if figure.less_is_better else "better"
        return Row(figure.name, figure.unit, before, after, None, verdict)
    ratio = after / before
    if 1 / (1 + SAME) <= ratio <= 1 + SAME:
        return Row(figure.name, figure.unit, before, after, ratio, "same")
    better = (ratio < 1) == figure.less_is_better
    return Row(figure.name, figure.unit, before, after, ratio, "better" if better else "worse")


def different_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """List the settings and the properties of the machine that differ: name, and both values."""
    return [
        (name, before[part].get(name), after[part].get(name))
        for part in ("settings", "environment")
        for name in before.get(part, {}) | after.get(part, {})
        if name not in _OF_NO_INTEREST and before[part].get(name) != after[part].get(name)
    ]


def conclusion(rows: list[Row]) -> str:
    if any(row.verdict == "not comparable" for row in rows):
        return (
            "One run is a closed loop and the other is not: they measure different things, and no figure is compared."
        )
    named = {verdict: [row.name for row in rows if row.verdict == verdict] for verdict in ("better", "worse")}
    parts = [f"{verdict} in {', '.join(names)}" for verdict, names in named.items() if names]
    return f"The second run is {'; '.join(parts) or f'the same within {SAME:.0%}'}."
