"""How all plots look: colors, style, scales and legends."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

BLUE, GREEN, AMBER, RED, GREY, VIOLET = "#2563eb", "#16a34a", "#d97706", "#dc2626", "#64748b", "#7c3aed"
# From the darkest, the median, to the lightest.
PERCENTILES: Final = {"p50_ms": "#1e3a8a", "p95_ms": BLUE, "p99_ms": "#93c5fd"}
STYLE: Final[dict[str, Any]] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": "#334155",
    "axes.edgecolor": "#cbd5e1",
    "axes.labelcolor": "#475569",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e2e8f0",
    "grid.linewidth": 0.8,
    "xtick.color": "#64748b",
    "ytick.color": "#64748b",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
}
# Beyond this ratio of the largest to the smallest figure small ones drown in a linear axis.
_LOG_FROM: Final = 20.0


Timeline = Mapping[str, Any]


@contextmanager
def styled(changes: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw in this style for the time of the block."""
    with matplotlib.rc_context(cast(Any, STYLE | dict(changes or {}))):
        yield


@contextmanager
def picture(file: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """Give a figure, which becomes a PNG when the block is left."""
    with styled():
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(file, dpi=120)


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
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        place = (-0.01, 1.0)
        axes.legend(
            handles, labels, loc="lower left", bbox_to_anchor=place, ncols=6, columnspacing=1.2, handlelength=1.3
        )


def draw_rates(axes: Axes, timeline: Timeline) -> None:
    """Draw what was due, and what became of it, in requests a second."""

    def step(name: str, color: str, label: str, **style: Any) -> list[float]:
        per_second = [number / timeline["bin_s"] for number in timeline[name]]
        axes.step(middles(timeline), per_second, color=color, where="mid", label=label, **style)
        return per_second

    answered = step("answered", GREEN, "answered")
    axes.fill_between(middles(timeline), answered, color=GREEN, alpha=0.15, linewidth=0, step="mid")
    for name, color in (("rejected", AMBER), ("cancelled", VIOLET), ("failed", RED)):
        if any(timeline[name]):
            step(name, color, name)
    step("offered", GREY, "due", linewidth=1)
    axes.set_ylabel("requests/s")
    axes.set_ylim(bottom=0)


def draw_latencies(
    axes: Axes, lines: Sequence[tuple[str, Timeline, str, str]], bounds_ms: Sequence[tuple[float, str, str]] = ()
) -> None:
    """Draw percentiles over time.

    Args:
        lines: label, timeline, name of the percentile there, color.
        bounds_ms: milliseconds, style and label of lines from side to side.
    """
    drawn: list[float] = []
    for label, timeline, name, color in lines:
        values = floats(timeline[name])
        drawn += values
        axes.plot(middles(timeline), values, color=color, label=label)
    for bound_ms, style, label in bounds_ms:
        drawn.append(bound_ms)
        axes.axhline(bound_ms, color=AMBER, linewidth=1.2, linestyle=style, label=label)
    axes.set_ylabel("latency, ms")
    scale(axes, drawn)
