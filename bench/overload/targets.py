"""What is asked of a server in a storm, and whether it did it. Pure."""

from typing import Any, Final, NamedTuple

GOODPUT_SHARE: Final = 0.9
P95_FACTOR: Final = 2.0
RECOVERY_S: Final = 2.0
MEMORY_GROWTH: Final = 0.05


class Figures(NamedTuple):
    """What was measured."""

    peak: float  # answers a second of as many patient clients as keep a server busy: the mean of before and after
    steady_p95_ms: float
    storm_goodput: float
    storm_p95_ms: float | None  # of the requests of the storm that were answered; None where none was
    requests: int
    neither: int  # of them those that were neither answered nor refused
    recovery_s: float | None  # from the end of the storm; None: not in the time that was watched
    memory_growth: float | None  # in the storm, as a share; None where it was not seen


def check(figures: Figures) -> list[dict[str, Any]]:
    """Make a row of each target, in the order in which they are asked; what was not measured is a miss."""
    peak, goodput, p95_ms = figures.peak, figures.storm_goodput, figures.storm_p95_ms
    least, most_ms = GOODPUT_SHARE * peak, P95_FACTOR * figures.steady_p95_ms
    recovery_s, growth = figures.recovery_s, figures.memory_growth
    checks = (
        (
            "goodput in the storm",
            f"at least {least:.1f}/s, {GOODPUT_SHARE:.0%} of the peak",
            f"{goodput:.1f}/s, {goodput / peak if peak else 0.0:.0%}",
            bool(peak) and goodput >= least,
        ),
        (
            "p95 of the accepted",
            f"at most {most_ms:.1f} ms, {P95_FACTOR:g} times that of the steady load",
            "none was accepted" if p95_ms is None else f"{p95_ms:.1f} ms, {p95_ms / figures.steady_p95_ms:.2f} times",
            p95_ms is not None and p95_ms <= most_ms,
        ),
        (
            "every request",
            "answered or refused",
            f"{figures.neither:,} of {figures.requests:,} neither",
            figures.requests > 0 and figures.neither == 0,
        ),
        (
            "recovery after the storm",
            f"within {RECOVERY_S:g} s",
            "not in the time watched" if recovery_s is None else f"{recovery_s:.1f} s",
            recovery_s is not None and recovery_s <= RECOVERY_S,
        ),
        (
            "memory in the storm",
            f"grows by at most {MEMORY_GROWTH:.0%}",
            "not seen" if growth is None else f"{growth:+.1%}",
            growth is not None and growth <= MEMORY_GROWTH,
        ),
    )
    return [dict(zip(("", "target", "measured", "passed"), each, strict=True)) for each in checks]
