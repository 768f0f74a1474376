"""What was measured and simulated, as Markdown tables."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from bench.replicas.measure import Measured
from bench.replicas.scenarios import Steady, Storm, kind_of

_LOADS: Final = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)

_Row = Sequence[object]


def as_markdown(measured: Measured, steady: Sequence[Steady], storms: Sequence[Storm]) -> str:
    """Write all of it."""
    parts = [
        _table(("replicas", "CPU ms a call", "calls/s"), _scales(measured)),
        _table(("clients", "calls inside", "CPU ms a call"), _occupancies(measured)),
        _alone(measured),
        _table(("load, of the peak", "core busy"), _busy(measured)),
        _table(("replicas", "of them slow", "balancing", "p50 ms", "p95 ms", "refused"), _steady(steady)),
        _table(("replicas", "balancing", "goodput", "p95 ms", "refused"), _storms(storms)),
    ]
    return "\n\n".join(parts)


def _scales(measured: Measured) -> Iterable[_Row]:
    return [(each.replicas, f"{1e3 * each.cost_s:.2f}", f"{each.calls_per_s:.0f}") for each in measured.scales]


def _occupancies(measured: Measured) -> Iterable[_Row]:
    return [(each.clients, f"{each.inside:.1f}", f"{1e3 * each.cost_s:.2f}") for each in measured.occupancies]


def _alone(measured: Measured) -> str:
    times_ms = 1e3 * np.array([each.alone_s for each in measured.sentences])
    low, middle, high = np.percentile(times_ms, [5, 50, 95]).tolist()
    return (
        f"One of {len(times_ms)} sentences alone: {middle:.2f} ms of a core (5 % below {low:.2f}, 5 % above {high:.2f})"
        f"; a refusal: {1e3 * measured.refusal_s:.2f} ms"
    )


def _busy(measured: Measured) -> Iterable[_Row]:
    kind = kind_of(measured)
    return [(f"{load:.0%}", f"{kind.busy(load):.0%}") for load in _LOADS]


def _steady(rows: Sequence[Steady]) -> Iterable[_Row]:
    return [
        (row.replicas, row.slow, row.balancer, f"{1e3 * row.p50_s:.0f}", f"{1e3 * row.p95_s:.0f}", f"{row.refused:.1%}")
        for row in rows
    ]


def _storms(rows: Sequence[Storm]) -> Iterable[_Row]:
    return [
        (row.replicas, row.balancer, f"{row.goodput:.0%}", f"{1e3 * row.p95_s:.0f}", f"{row.refused:.0%}")
        for row in rows
    ]


def _table(head: Sequence[str], rows: Iterable[_Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
