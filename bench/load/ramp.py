"""The ramp: loads at one rate after another, until the highest is found that a server holds under a target."""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from bench.frame import Log
from bench.load.prepare import LoadSettings
from bench.load.run import run_load

# From step to step until one fails, and how near the highest rate is to the truth.
GROWTH: Final = 1.5
PRECISION: Final = 0.05
# Fewer requests in a step say nothing.
FEWEST_REQUESTS: Final = 10


class _EndedError(Exception):
    """The search is over: Ctrl-C, or not even a few requests a step are answered in time."""


def why_not(report: dict[str, Any], p95_ms: float) -> str | None:
    """Say why a load did not hold, in a few words; None where it did."""
    if unanswered := report["num_requests"] - report["completed"]:
        most = report["errors"][0]
        return f"{unanswered} of {report['num_requests']} not answered, most {most['code']} {most['reason']}"
    if not report["completed"]:
        return "no request was due"
    if report["p95_e2el_ms"] <= p95_ms:
        return None
    why = f"p95 {report['p95_e2el_ms']:.1f} ms, above {p95_ms:g}"
    if report["generator_limited"]:
        return f"{why}, but the generator was late: p95 of its lateness {report['p95_send_delay_ms']:.1f} ms"
    return why


def describe(step: dict[str, Any]) -> str:
    """Say how a step went, in a line without its rate."""
    if step["p95_e2el_ms"] is None:
        return f"failed: {step['why']}"
    latency = f"p50 {step['p50_e2el_ms']:.1f}, p95 {step['p95_e2el_ms']:.1f}, p99 {step['p99_e2el_ms']:.1f} ms"
    return f"held, {latency}" if step["held"] else f"failed, {latency}: {step['why']}"


def run_ramp(settings: LoadSettings, texts: list[str], first_rate: float, p95_ms: float, log: Log) -> dict[str, Any]:
    """Search the highest rate, by steps of these settings, of which the duration is set.

    Returns:
        The report of the step at the highest rate that held, or of the last where none did, and with it
        `highest_rate`, `next_rate` and `next_why`, which say where and why it ended, and all `steps`.
    """
    steps: list[dict[str, Any]] = []
    interrupted = False

    def holds(rate: float) -> bool:
        nonlocal interrupted
        if rate * (settings.duration_s or 0.0) < FEWEST_REQUESTS:
            raise _EndedError
        report = asyncio.run(run_load(replace(settings, rate=rate, seed=settings.seed + len(steps)), texts))
        if interrupted := report["interrupted"]:
            raise _EndedError
        why = why_not(report, p95_ms)
        steps.append({"rate": rate, "held": why is None, "why": why, **report})
        log(f"{rate:.1f} requests/s: {describe(steps[-1])}")
        return why is None

    with suppress(_EndedError):
        search(holds, first_rate)
    return {**summarize_steps(steps, p95_ms), "mode": "ramp", "interrupted": interrupted}


def search(
    holds: Callable[[float], bool], first_rate: float, *, growth: float = GROWTH, precision: float = PRECISION
) -> float:
    """Find the highest rate that holds, by bisection on a logarithmic scale, and return one that held.

    The bracket is widened by `growth`, above 1. The result is below the truth by at most `precision`, a share of it.
    """
    low = high = first_rate
    if holds(first_rate):
        while holds(high := low * growth):
            low = high
    else:
        while not holds(low := high / growth):
            high = low
    while high / low > 1 + precision:
        middle = math.sqrt(low * high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def summarize_steps(steps: list[dict[str, Any]], p95_ms: float) -> dict[str, Any]:
    held = [step for step in steps if step["held"]]
    best = max(held, key=lambda step: float(step["rate"]), default=None)
    failed = [step for step in steps if not step["held"] and (best is None or step["rate"] > best["rate"])]
    above = min(failed, key=lambda step: float(step["rate"]), default=None)
    shown = best or (steps[-1] if steps else {"completed": 0, "num_requests": 0})
    long = ("timeline", "server", "models", "latency_quantiles")
    return {
        **{name: value for name, value in shown.items() if name not in ("rate", "held", "why")},
        "p95_target_ms": p95_ms,
        "highest_rate": best and best["rate"],
        "next_rate": above and above["rate"],
        "next_why": above and above["why"],
        "steps": [{name: value for name, value in step.items() if name not in long} for step in steps],
    }
