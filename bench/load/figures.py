"""What a load test found, as one flat record of figures.

Names follow `vllm bench serve` where it has one: `e2el` is the end-to-end latency.
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.load.samples import Outcome, Samples, Table

PERCENTILES = (50, 90, 95, 99)

# An event loop wakes a millisecond late by its nature: beyond this the generator was too busy.
LATE_S = 0.010
# Where it was, and lateness is this much of the latency, the generator is what is measured as well.
LATE_SHARE = 0.2

# Of the curve of latencies: fine at its end, where those lie that people remember.
QUANTILES = (*range(0, 90, 5), *range(90, 99), 99.0, 99.5, 99.9, 99.95, 99.99, 100.0)

PRIORITIES = ("interactive", "bulk")


def summarize(samples: Samples, goodput_ms: float | None = None) -> dict[str, Any]:
    """Compute the figures of the requests that count, ready for JSON; a figure of no request at all is None.

    Latencies are of the requests that were answered, from the moment each was due, and percentiles are taken
    from all of them. Throughputs are over `duration`, from the end of the warm-up to the last answer or error.
    A good answer takes at most `goodput_ms`; None: any is good.
    """
    table = samples.table()
    duration_s = max(float(table.ended_s.max(initial=0.0)), 0.0)
    return {
        "duration": duration_s,
        "warmup_requests": samples.warmup_requests,
        "goodput_ms": goodput_ms,
        **_figures(table, duration_s, goodput_ms),
        "latency_quantiles": _quantiles(table),
        **_lateness(table.sent_s - table.due_s, table.latency_ms),
        **_errors(table),
        **_streaming(table, np.array(samples.gaps_s)),
        **_by_priority(table, duration_s, goodput_ms),
    }


def _figures(table: Table, duration_s: float, goodput_ms: float | None) -> dict[str, Any]:
    """Compute the figures that are of all requests as well as of those of one priority."""
    requests, completed = len(table.due_s), int(table.answered.sum())
    source_tokens, target_tokens = int(table.source_tokens.sum()), int(table.target_tokens.sum())
    good = completed if goodput_ms is None else int((table.latency_ms <= goodput_ms).sum())
    return {
        "num_requests": requests,
        "completed": completed,
        **{outcome.value: int(table.with_outcome(outcome).sum()) for outcome in Outcome if outcome.value != "answered"},
        "error_rate": (requests - completed) / requests if requests else None,
        "total_sentences": int(table.sentences.sum()),
        "total_input_tokens": source_tokens,
        "total_output_tokens": target_tokens,
        "request_throughput": _per_second(completed, duration_s),
        "request_goodput": _per_second(good, duration_s),
        "sentence_throughput": _per_second(int(table.sentences.sum()), duration_s),
        "input_throughput": _per_second(source_tokens, duration_s),
        "output_throughput": _per_second(target_tokens, duration_s),
        "total_token_throughput": _per_second(source_tokens + target_tokens, duration_s),
        **_spread(table.latency_ms, "e2el"),
    }


def _per_second(count: int, duration_s: float) -> float:
    return count / duration_s if duration_s else 0.0


def _spread(times_ms: NDArray[np.float64], name: str) -> dict[str, float | None]:
    """Compute field -> milliseconds, from [any] milliseconds."""
    percentiles = [f"p{percentile}_{name}_ms" for percentile in PERCENTILES]
    names = [f"mean_{name}_ms", f"median_{name}_ms", f"std_{name}_ms", *percentiles, f"max_{name}_ms"]
    if not times_ms.size:
        return dict.fromkeys(names)
    at = np.percentile(times_ms, PERCENTILES)
    figures = [times_ms.mean(), np.median(times_ms), times_ms.std(), *at, times_ms.max()]
    return {field: float(figure) for field, figure in zip(names, figures, strict=True)}


def _quantiles(table: Table) -> list[list[float]]:
    """Return pairs of a percentile and the latency in milliseconds there."""
    if not table.answered.any():
        return []
    at = np.percentile(table.latency_ms, QUANTILES)
    return [[float(quantile), float(value)] for quantile, value in zip(QUANTILES, at, strict=True)]


def _lateness(send_delay_s: NDArray[np.float64], latency_ms: NDArray[np.float64]) -> dict[str, Any]:
    """Compute how far the generator itself was behind; the latencies include it.

    Args:
        send_delay_s: [requests] from when each was due to when it was sent.
        latency_ms: [answered requests].
    """
    delay_ms = send_delay_s * 1e3 if send_delay_s.size else np.zeros(1)
    p95_ms = float(np.percentile(delay_ms, 95))
    latency_p95_ms = float(np.percentile(latency_ms, 95)) if latency_ms.size else 0.0
    return {
        "late_sends": int((send_delay_s > LATE_S).sum()),
        "mean_send_delay_ms": float(delay_ms.mean()),
        "p95_send_delay_ms": p95_ms,
        "p99_send_delay_ms": float(np.percentile(delay_ms, 99)),
        "max_send_delay_ms": float(delay_ms.max()),
        "generator_limited": p95_ms > max(LATE_S * 1e3, LATE_SHARE * latency_p95_ms),
    }


def _errors(table: Table) -> dict[str, Any]:
    """Count requests that were not answered by code, and by code and reason with the first message."""
    by_code, details = Counter[str](), []
    counts = np.bincount(table.ending, minlength=len(table.endings)).tolist()
    for ending, count in zip(table.endings[1:], counts[1:], strict=True):
        by_code[ending.code] += count
        details.append({**ending._asdict(), "outcome": ending.outcome.value, "count": count})
    return {"errors_by_code": by_code, "errors": sorted(details, key=lambda error: -error["count"])}


def _streaming(table: Table, gaps_s: NDArray[np.float64]) -> dict[str, Any]:
    """Compute of streams `ttft`, from when a request was due to its first text, and `itl`, between two pieces."""
    first_s = (table.first_text_s - table.due_s)[~np.isnan(table.first_text_s)]
    if not first_s.size:
        return {}
    return {**_spread(first_s * 1e3, "ttft"), **_spread(gaps_s * 1e3, "itl")}


def _by_priority(table: Table, duration_s: float, goodput_ms: float | None) -> dict[str, Any]:
    """Compute the figures of each priority, where there are both."""
    if not table.bulk.any() or table.bulk.all():
        return {}
    rows = (~table.bulk, table.bulk)
    tables = {name: table.only(row) for name, row in zip(PRIORITIES, rows, strict=True)}
    return {"by_priority": {name: _figures(part, duration_s, goodput_ms) for name, part in tables.items()}}
