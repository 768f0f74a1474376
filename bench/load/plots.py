"""The plots of a load test's page, each an SVG element as text."""

import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

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
_WIDE: Final = (12.6, 2.9)

P = ParamSpec("P")
_numbers = itertools.count()


def svg(
    x_label: str, y_label: str, size: tuple[float, float] = _SIZE
) -> Callable[[Callable[Concatenate[Axes, P], None]], Callable[P, str]]:
    """Make of a function that draws into empty axes one that gives the plot as text."""

    def decorate(draw: Callable[Concatenate[Axes, P], None]) -> Callable[P, str]:
        @wraps(draw)
        def plot(*args: P.args, **kwargs: P.kwargs) -> str:
            # Several plots of one page may not share the ids of their parts.
            with styled({"svg.hashsalt": f"plot {next(_numbers)}"}):
                figure = Figure(figsize=size, layout="constrained")
                axes = figure.subplots()
                axes.set_xlabel(x_label)
                axes.set_ylabel(y_label)
                draw(axes, *args, **kwargs)
                written = io.StringIO()
                figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            return written.getvalue()[written.getvalue().index("<svg") :]

        return plot

    return decorate


@svg("seconds", "latency, ms", _WIDE)
def latency_over_time(axes: Axes, timeline: Timeline) -> None:
    """Draw percentiles of every interval."""
    lines = [(name.removesuffix("_ms"), timeline, name, color) for name, color in PERCENTILES.items()]
    _latency_lines(axes, lines)


@svg("seconds", "latency, ms")
def latencies_over_time(axes: Axes, timelines: Mapping[str, Timeline]) -> None:
    """Draw the p95 of every interval of two runs."""
    both = zip(timelines.items(), (BLUE, AMBER), strict=True)
    _latency_lines(axes, [(f"{name} p95", timeline, "p95_ms", color) for (name, timeline), color in both])


def _latency_lines(axes: Axes, lines: Sequence[tuple[str, Timeline, str, str]]) -> None:
    drawn: list[float] = []
    for label, timeline, name, color in lines:
        values = floats(timeline[name])
        drawn += values
        axes.plot(middles(timeline), values, color=color, label=label)
    scale(axes, drawn)
    legend(axes)


@svg("seconds", "requests/s")
def rates_over_time(axes: Axes, timeline: Timeline) -> None:
    at_s = middles(timeline)

    def step(name: str, color: str, label: str, **style: Any) -> None:
        per_second = np.array(timeline[name]) / timeline["bin_s"]
        axes.step(at_s, per_second, color=color, where="mid", label=label, **style)

    answered = np.array(timeline["answered"]) / timeline["bin_s"]
    axes.fill_between(at_s, answered, color=GREEN, alpha=0.15, linewidth=0, step="mid")
    step("answered", GREEN, "answered")
    for name, color in (("rejected", AMBER), ("cancelled", VIOLET), ("failed", RED)):
        if any(timeline[name]):
            step(name, color, name)
    step("offered", GREY, "due", linewidth=1)
    axes.set_ylim(bottom=0)
    legend(axes)


@svg("seconds", "not answered/s")
def errors_over_time(axes: Axes, timeline: Timeline) -> None:
    """Draw requests a second that were not answered, stacked by code."""
    bottom = np.zeros(len(timeline["t_s"]))
    for (code, counts), color in zip(timeline["errors"].items(), itertools.cycle(_CODES), strict=False):
        values = np.array(counts) / timeline["bin_s"]
        axes.bar(middles(timeline), values, timeline["bin_s"], bottom, color=color, label=code)
        bottom += values
    legend(axes)


@svg("percentile", "latency, ms")
def quantiles(axes: Axes, runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw how long the slowest one in two, in ten, in a hundred take, of each run by its name."""
    drawn: list[float] = []
    for (name, run), color in zip(runs.items(), (BLUE, AMBER), strict=False):
        told = [(at, ms) for at, ms in run["latency_quantiles"] if at <= 100 - 100 / max(run["completed"], 1)]
        drawn += [ms for _, ms in told]
        axes.plot([_nines(at) for at, _ in told], [ms for _, ms in told], color=color, label=name)
    ticks = [0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99]
    axes.set_xticks([_nines(at) for at in ticks], [f"{at:g}" for at in ticks])
    axes.set_xlim(0, max([_nines(at) for at in ticks if at <= 99] + axes.dataLim.intervalx.tolist()[1:]))
    scale(axes, drawn)
    if len(runs) > 1:
        legend(axes)


@svg("requests/s", "latency, ms")
def ramp(axes: Axes, steps: Sequence[Mapping[str, Any]], target_ms: float) -> None:
    answered = sorted((step for step in steps if step["completed"]), key=lambda step: float(step["rate"]))
    rates, drawn = [step["rate"] for step in answered], [target_ms]
    for name, color in PERCENTILES.items():
        values = [step[name.replace("_ms", "_e2el_ms")] for step in answered]
        drawn += values
        axes.plot(rates, values, color=color, label=name.removesuffix("_ms"), zorder=2)
    for held, color, label in ((True, GREEN, "held"), (False, RED, "failed")):
        of_kind = [step for step in answered if step["held"] is held]
        at, p95 = ([step[name] for step in of_kind] for name in ("rate", "p95_e2el_ms"))
        axes.scatter(at, p95, s=22, color=color, label=label, zorder=3)
    axes.axhline(target_ms, color=AMBER, linewidth=1.2, linestyle="--", label=f"target {target_ms:g} ms")
    scale(axes, drawn)
    legend(axes)


@svg("seconds", "")
def server_line(
    axes: Axes, t_s: Sequence[float], values: Sequence[float | None], name: str, color: str, y_label: str
) -> None:
    axes.set_ylabel(y_label)
    axes.plot(t_s, floats(values), color=color, label=name)
    axes.set_ylim(0, max((value for value in values if value is not None), default=0.0) * 1.1 or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.01)
    legend(axes)


def _nines(percentile: float) -> float:
    """Count nines: 0 at 0, 1 at 90, 2 at 99."""
    return -math.log10(1 - percentile / 100) if percentile < 100 else 5.0
