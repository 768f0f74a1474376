"""The plots of a load test's page, each an SVG element as text."""

import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.plotting import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    PERCENTILES,
    RED,
    VIOLET,
    Timeline,
    floats,
    legend,
    middles,
    scale,
    styled,
)

# Of codes of errors, in the order in which they appear.
_CODES: Final = (AMBER, RED, VIOLET, "#0891b2", "#be185d", GREY)
_SIZE: Final = (6.2, 2.9)
WIDE: Final = (12.6, 2.9)


class Drawing:
    """A plot that is being drawn.

    Attributes:
        svg: the whole, once the block of `drawing` is left.
    """

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.svg = ""


_numbers = itertools.count()


@contextmanager
def drawing(x_label: str, y_label: str, size: tuple[float, float] = _SIZE) -> Iterator[Drawing]:
    """Give an empty plot, which becomes text when the block is left."""
    # Several plots of one page may not share the ids of their parts.
    with styled({"svg.hashsalt": f"plot {next(_numbers)}"}):
        figure = Figure(figsize=size, layout="constrained")
        drawn = Drawing(figure.subplots())
        drawn.axes.set_xlabel(x_label)
        drawn.axes.set_ylabel(y_label)
        yield drawn
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    drawn.svg = written.getvalue()[written.getvalue().index("<svg") :]


def latency_over_time(timelines: Mapping[str, Timeline], size: tuple[float, float] = _SIZE) -> str:
    """Draw percentiles of every interval; of several runs the p95 of each."""
    with drawing("seconds", "latency, ms", size) as plot:
        drawn: list[float] = []
        if len(timelines) == 1:
            [timeline] = timelines.values()
            lines = [(name.removesuffix("_ms"), timeline, name, color) for name, color in PERCENTILES.items()]
        else:
            colors = (BLUE, AMBER)
            lines = [
                (f"{name} p95", timeline, "p95_ms", color)
                for (name, timeline), color in zip(timelines.items(), colors, strict=True)
            ]
        for label, timeline, name, color in lines:
            values = floats(timeline[name])
            drawn += values
            plot.axes.plot(middles(timeline), values, color=color, label=label)
        scale(plot.axes, drawn)
        legend(plot.axes)
    return plot.svg


def rates_over_time(timeline: Timeline) -> str:
    with drawing("seconds", "requests/s") as plot:
        at_s = middles(timeline)
        per_second = {name: np.array(timeline[name]) / timeline["bin_s"] for name in ("offered", "answered")}
        plot.axes.fill_between(at_s, per_second["answered"], color=GREEN, alpha=0.15, linewidth=0, step="mid")
        plot.axes.step(at_s, per_second["answered"], color=GREEN, where="mid", label="answered")
        for name, color in (("rejected", AMBER), ("cancelled", VIOLET), ("failed", RED)):
            if any(timeline[name]):
                values = np.array(timeline[name]) / timeline["bin_s"]
                plot.axes.step(at_s, values, color=color, where="mid", label=name)
        plot.axes.step(at_s, per_second["offered"], color=GREY, where="mid", linewidth=1, label="due")
        plot.axes.set_ylim(bottom=0)
        legend(plot.axes)
    return plot.svg


def errors_over_time(timeline: Timeline) -> str:
    """Draw requests a second that were not answered, stacked by code."""
    with drawing("seconds", "not answered/s") as plot:
        bottom = np.zeros(len(timeline["t_s"]))
        for (code, counts), color in zip(timeline["errors"].items(), itertools.cycle(_CODES), strict=False):
            values = np.array(counts) / timeline["bin_s"]
            plot.axes.bar(middles(timeline), values, timeline["bin_s"], bottom, color=color, label=code)
            bottom += values
        legend(plot.axes)
    return plot.svg


def quantiles(runs: Mapping[str, tuple[Sequence[tuple[float, float]], int]]) -> str:
    """Draw how long the slowest one in two, in ten, in a hundred take.

    Args:
        runs: by name: pairs of a percentile and milliseconds, and of how many answers they are.
    """
    with drawing("percentile", "latency, ms") as plot:
        drawn: list[float] = []
        for (name, (curve, answers)), color in zip(runs.items(), (BLUE, AMBER), strict=False):
            told = [(at, ms) for at, ms in curve if at <= 100 - 100 / max(answers, 1)]
            drawn += [ms for _, ms in told]
            plot.axes.plot([_nines(at) for at, _ in told], [ms for _, ms in told], color=color, label=name)
        ticks = [0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99]
        plot.axes.set_xticks([_nines(at) for at in ticks], [f"{at:g}" for at in ticks])
        plot.axes.set_xlim(0, max([_nines(at) for at in ticks if at <= 99] + plot.axes.dataLim.intervalx.tolist()[1:]))
        scale(plot.axes, drawn)
        if len(runs) > 1:
            legend(plot.axes)
    return plot.svg


def ramp(steps: Sequence[Mapping[str, Any]], target_ms: float) -> str:
    with drawing("requests/s", "latency, ms") as plot:
        answered = sorted((step for step in steps if step["completed"]), key=lambda step: float(step["rate"]))
        rates, drawn = [step["rate"] for step in answered], [target_ms]
        for name, color in PERCENTILES.items():
            values = [step[name.replace("_ms", "_e2el_ms")] for step in answered]
            drawn += values
            plot.axes.plot(rates, values, color=color, label=name.removesuffix("_ms"), zorder=2)
        for held, color, label in ((True, GREEN, "held"), (False, RED, "failed")):
            of_kind = [step for step in answered if step["held"] is held]
            at, p95 = ([step[name] for step in of_kind] for name in ("rate", "p95_e2el_ms"))
            plot.axes.scatter(at, p95, s=22, color=color, label=label, zorder=3)
        plot.axes.axhline(target_ms, color=AMBER, linewidth=1.2, linestyle="--", label=f"target {target_ms:g} ms")
        scale(plot.axes, drawn)
        legend(plot.axes)
    return plot.svg


def server_line(t_s: Sequence[float], values: Sequence[float | None], name: str, color: str, y_label: str) -> str:
    with drawing("seconds", y_label) as plot:
        known = [value for value in values if value is not None]
        plot.axes.plot(t_s, floats(values), color=color, label=name)
        plot.axes.set_ylim(0, max(known, default=0.0) * 1.1 or 1.0)
        plot.axes.yaxis.set_major_locator(MaxNLocator(5))
        plot.axes.margins(x=0.01)
        legend(plot.axes)
    return plot.svg


def _nines(percentile: float) -> float:
    """Count nines: 0 at 0, 1 at 90, 2 at 99."""
    return -math.log10(1 - percentile / 100) if percentile < 100 else 5.0
