"""The plots of a load test's page, each an SVG element as text."""

import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench import plotting
from bench.plotting import AMBER, BLUE, GREEN, GREY, PERCENTILES, RED, VIOLET, Timeline, floats, legend, middles, scale

# Of codes of errors, in the order in which they appear.
_CODES: Final = (AMBER, RED, VIOLET, "#0891b2", "#be185d", GREY)
_SIZE: Final = (6.2, 2.9)
_WIDE: Final = (12.6, 2.9)

_numbers = itertools.count()


def _svg(draw: Callable[[Axes], None], x_label: str, y_label: str, size: tuple[float, float] = _SIZE) -> str:
    # Several plots of one page may not share the ids of their parts.
    with plotting.styled({"svg.hashsalt": f"plot {next(_numbers)}"}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        draw(axes)
        legend(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()[written.getvalue().index("<svg") :]


def latency_over_time(timeline: Timeline) -> str:
    """Draw percentiles of every interval."""
    lines = [(name.removesuffix("_ms"), timeline, name, color) for name, color in PERCENTILES.items()]
    return _svg(lambda axes: plotting.draw_latencies(axes, lines), "seconds", "", _WIDE)


def latencies_over_time(timelines: Mapping[str, Timeline]) -> str:
    """Draw the p95 of every interval of two runs."""
    both = zip(timelines.items(), (BLUE, AMBER), strict=True)
    lines = [(f"{name} p95", timeline, "p95_ms", color) for (name, timeline), color in both]
    return _svg(lambda axes: plotting.draw_latencies(axes, lines), "seconds", "")


def rates_over_time(timeline: Timeline) -> str:
    return _svg(lambda axes: plotting.draw_rates(axes, timeline), "seconds", "")


def errors_over_time(timeline: Timeline) -> str:
    """Draw requests a second that were not answered, stacked by code."""

    def draw(axes: Axes) -> None:
        bottom = np.zeros(len(timeline["t_s"]))
        for (code, counts), color in zip(timeline["errors"].items(), itertools.cycle(_CODES), strict=False):
            values = np.array(counts) / timeline["bin_s"]
            axes.bar(middles(timeline), values, timeline["bin_s"], bottom, color=color, label=code)
            bottom += values

    return _svg(draw, "seconds", "not answered/s")


def quantiles(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw how long the slowest one in two, in ten, in a hundred take, of each run by its name."""

    def draw(axes: Axes) -> None:
        drawn: list[float] = []
        for (name, run), color in zip(runs.items(), (BLUE, AMBER), strict=False):
            told = [(at, ms) for at, ms in run["latency_quantiles"] if at <= 100 - 100 / max(run["completed"], 1)]
            drawn += [ms for _, ms in told]
            axes.plot([_nines(at) for at, _ in told], [ms for _, ms in told], color=color, label=name)
        ticks = [0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99]
        axes.set_xticks([_nines(at) for at in ticks], [f"{at:g}" for at in ticks])
        axes.set_xlim(0, max([_nines(at) for at in ticks if at <= 99] + axes.dataLim.intervalx.tolist()[1:]))
        scale(axes, drawn)

    return _svg(draw, "percentile", "latency, ms")


def ramp(steps: Sequence[Mapping[str, Any]], target_ms: float) -> str:
    answered = sorted((step for step in steps if step["completed"]), key=lambda step: float(step["rate"]))

    def draw(axes: Axes) -> None:
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

    return _svg(draw, "requests/s", "latency, ms")


def server_line(t_s: Sequence[float], values: Sequence[float | None], name: str, color: str, y_label: str) -> str:
    def draw(axes: Axes) -> None:
        axes.plot(t_s, floats(values), color=color, label=name)
        axes.set_ylim(0, max((value for value in values if value is not None), default=0.0) * 1.1 or 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0.01)

    return _svg(draw, "seconds", y_label)


def _nines(percentile: float) -> float:
    """Count nines: 0 at 0, 1 at 90, 2 at 99."""
    return -math.log10(1 - percentile / 100) if percentile < 100 else 5.0
