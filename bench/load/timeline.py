"""A load test second by second: what was asked, what was answered and how fast."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.load.samples import Outcome, Table

_FEWEST_BINS, _MOST_BINS = 8, 40
# Percentiles of fewer requests say little.
_REQUESTS_A_BIN = 20
_WIDTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
PERCENTILES = (50, 95, 99)


def bin_width_s(duration_s: float, requests: int) -> float:
    """Choose a round width, up to an hour: at most forty make up the duration, fewer where requests are few."""
    bins = min(max(requests // _REQUESTS_A_BIN, _FEWEST_BINS), _MOST_BINS)
    return next((width_s for width_s in _WIDTHS_S if duration_s <= bins * width_s), _WIDTHS_S[-1])


def timeline(table: Table, width_s: float | None = None) -> dict[str, Any]:
    """Count the requests in intervals of `width_s`, else as the duration suggests, in columns, ready for JSON.

    Requests count where they were due, answers and errors where they came. Latencies are those of the answered
    requests that were due in the interval: None where there is none.

    Returns:
        `bin_s`; `t_s`, the beginning of each interval; `offered`, `answered`, `rejected`, `cancelled`, `failed` and,
        by code, `errors`: numbers of requests; `p50_ms`, `p95_ms`, `p99_ms`.
    """
    width_s = width_s or bin_width_s(float(table.ended_s.max(initial=0.0)), len(table.due_s))
    due, ended = (np.floor(times_s / width_s).astype(np.int64) for times_s in (table.due_s, table.ended_s))
    bins = int(ended.max(initial=-1)) + 1

    def numbers(places: NDArray[np.int64]) -> list[int]:
        return [int(number) for number in np.bincount(places, minlength=bins)]

    code = np.array([ending.code for ending in table.endings])[table.ending]
    return {
        "bin_s": width_s,
        "t_s": [round(index * width_s, 3) for index in range(bins)],
        "offered": numbers(due),
        **{outcome.value: numbers(ended[table.with_outcome(outcome)]) for outcome in Outcome},
        "errors": {name: numbers(ended[code == name]) for name in dict.fromkeys(e.code for e in table.endings[1:])},
        **_latencies(table, due, bins),
    }


def _latencies(table: Table, due: NDArray[np.int64], bins: int) -> dict[str, list[float | None]]:
    """Compute percentile -> [bins] milliseconds."""
    latency_ms, places = table.latency_ms, due[table.answered]
    order = np.argsort(places, kind="stable")
    parts = np.split(latency_ms[order], np.searchsorted(places[order], np.arange(1, bins)))
    return {
        f"p{percentile}_ms": [float(np.percentile(part, percentile)) if part.size else None for part in parts[:bins]]
        for percentile in PERCENTILES
    }
