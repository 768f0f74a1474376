"""What is asked of a server in a storm, and whether it did it. Pure."""

from typing import Final, NamedTuple

GOODPUT_SHARE: Final = 0.9
P95_FACTOR: Final = 2.0
RECOVERY_S: Final = 2.0
MEMORY_GROWTH: Final = 0.05


class Figures(NamedTuple):
    """What was measured.

    Attributes:
        peak: answers a second of as many patient clients as keep a server busy: the mean of before and after.
        storm_p95_ms: of the requests of the storm that were answered; None where none was.
        neither: of them those that were neither answered nor refused.
        recovery_s: from the end of the storm; None: not in the time that was watched.
        memory_growth: in the storm, as a share; None where it was not seen.
    """

    peak: float
    steady_p95_ms: float
    storm_goodput: float
    storm_p95_ms: float | None
    requests: int
    neither: int
    recovery_s: float | None
    memory_growth: float | None


class Check(NamedTuple):
    name: str
    target: str
    measured: str
    passed: bool


def check(figures: Figures) -> list[Check]:
    """Check all targets, in the order in which they are asked."""
    return [_goodput(figures), _latency(figures), _answered(figures), _recovery(figures), _memory(figures)]


def _goodput(figures: Figures) -> Check:
    least = GOODPUT_SHARE * figures.peak
    share = figures.storm_goodput / figures.peak if figures.peak else 0.0
    measured = f"{figures.storm_goodput:.1f}/s, {share:.0%}"
    target = f"at least {least:.1f}/s, {GOODPUT_SHARE:.0%} of the peak"
    return Check("goodput in the storm", target, measured, bool(figures.peak) and figures.storm_goodput >= least)


def _latency(figures: Figures) -> Check:
    most_ms = P95_FACTOR * figures.steady_p95_ms
    target = f"at most {most_ms:.1f} ms, {P95_FACTOR:g} times that of the steady load"
    if figures.storm_p95_ms is None:
        return Check("p95 of the accepted", target, "none was accepted", False)
    factor = figures.storm_p95_ms / figures.steady_p95_ms
    measured = f"{figures.storm_p95_ms:.1f} ms, {factor:.2f} times"
    return Check("p95 of the accepted", target, measured, figures.storm_p95_ms <= most_ms)


def _answered(figures: Figures) -> Check:
    measured = f"{figures.neither:,} of {figures.requests:,} neither"
    passed = figures.requests > 0 and figures.neither == 0
    return Check("every request", "answered or refused", measured, passed)


def _recovery(figures: Figures) -> Check:
    measured = "not in the time watched" if figures.recovery_s is None else f"{figures.recovery_s:.1f} s"
    passed = figures.recovery_s is not None and figures.recovery_s <= RECOVERY_S
    return Check("recovery after the storm", f"within {RECOVERY_S:g} s", measured, passed)


def _memory(figures: Figures) -> Check:
    measured = "not seen" if figures.memory_growth is None else f"{figures.memory_growth:+.1%}"
    passed = figures.memory_growth is not None and figures.memory_growth <= MEMORY_GROWTH
    return Check("memory in the storm", f"grows by at most {MEMORY_GROWTH:.0%}", measured, passed)
