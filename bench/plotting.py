"""How all plots look: colors, style, scales and legends."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

BLUE, GREEN, AMBER, RED, GREY, VIOLET = "#2563eb", "#16a34a", "#d97706", "#dc2626", "#64748b", "#7c3aed"
# From the darkest, the median, to the lightest.
_PERCENTILES: Final = {"p50_ms": "#1e3a8a", "p95_ms": BLUE, "p99_ms": "#93c5fd"}
_STYLE: Final[dict[str, Any]] = {
    "text.color": "#334155",
    "axes.edgecolor": "#cbd5e1",
    "axes.labelcolor": "#475569",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e2e8f0",
    "xtick.color": "#64748b",
    "ytick.color": "#64748b",
    "legend.frameon": False,
    "legend.fontsize": 9,
}
# Beyond this ratio of the largest to the smallest figure small ones drown in a linear axis.
_LOG_FROM: Final = 20.0

Timeline = Mapping[str, Any]


@contextmanager
def drawing(size: tuple[float, float], changes: Mapping[str, Any] | None = None) -> Iterator[Figure]:
    """Give a figure; all is drawn, and written, in this style for the time of the block."""
    with matplotlib.rc_context(cast(Any, _STYLE | dict(changes or {}))):
        yield Figure(figsize=size, layout="constrained")


def middles(timeline: Timeline) -> list[float]:
    return [begin_s + timeline["bin_s"] / 2 for begin_s in timeline["t_s"]]


def floats(values: Sequence[float | None]) -> list[float]:
    """Make a gap NaN, which is not drawn."""
    return [math.nan if value is None else value for value in values]


def scale(axes: Axes, drawn: Sequence[float]) -> None:
    """Begin at 0, or scale by logarithms where small figures would drown."""
    positive = [value for value in drawn if value > 0]  # NaN is not
    if not positive or max(positive) / min(positive) <= _LOG_FROM:
        axes.set_ylim(0, max(positive, default=1.0) * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0.8 * min(positive), 1.3 * max(positive))


def legend(axes: Axes) -> None:
    """Put the legend above the plot, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=6, columnspacing=1.2, handlelength=1.3)


def draw_rates(axes: Axes, timeline: Timeline) -> None:
    """Draw what was due, and what became of it, in requests a second."""
    lines = (("answered", GREEN), ("rejected", AMBER), ("cancelled", VIOLET), ("failed", RED), ("offered", GREY))
    for name, color in lines:
        if any(timeline[name]):
            per_second = [number / timeline["bin_s"] for number in timeline[name]]
            label = "due" if name == "offered" else name
            axes.step(middles(timeline), per_second, color=color, where="mid", label=label)
    axes.set_ylabel("requests/s")
    axes.set_ylim(bottom=0)


def draw_latencies(axes: Axes, timeline: Timeline, bounds_ms: Sequence[tuple[float, str, str]] = ()) -> None:
    """Draw percentiles over time, and lines from side to side, of milliseconds, style and label."""
    drawn = [bound_ms for bound_ms, _, _ in bounds_ms]
    for name, color in _PERCENTILES.items():
        values = floats(timeline[name])
        drawn += values
        axes.plot(middles(timeline), values, color=color, label=name.removesuffix("_ms"))
    for bound_ms, style, label in bounds_ms:
        axes.axhline(bound_ms, color=AMBER, linewidth=1.2, linestyle=style, label=label)
    axes.set_ylabel("latency, ms")
    scale(axes, drawn)
