"""A storm as a picture: what was asked and what was answered, how fast, and the memory of the server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from bench import plotting
from bench.overload.targets import P95_FACTOR


def plot(report: Mapping[str, Any], file: Path) -> None:
    """Draw three panels over one axis of time, the storm shaded."""
    timeline, steady_ms = report["timeline"], report["steady_p95_ms"]
    with plotting.picture(file, (11, 8.2)) as figure:
        rates, latency, memory = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1.6))
        plotting.draw_rates(rates, timeline)
        rates.axhline(report["peak"], color=plotting.GREEN, linewidth=1.2, linestyle="--", label="sustainable")
        _name_phases(rates, report)
        lines = [(name, timeline, f"{name}_ms", plotting.PERCENTILES[f"{name}_ms"]) for name in ("p50", "p95")]
        bounds_ms = [(steady_ms, ":", "p95 at 80 %"), (P95_FACTOR * steady_ms, "--", f"{P95_FACTOR:g} times that")]
        plotting.draw_latencies(latency, lines, bounds_ms)
        _memory(memory, report)
        for axes in (rates, latency, memory):
            storm = report["phases"][1]
            axes.axvspan(storm["from_s"], storm["to_s"], color=plotting.RED, alpha=0.06, linewidth=0)
            plotting.legend(axes)


def _memory(axes: Axes, report: Mapping[str, Any]) -> None:
    at_s, mib = zip(*report["resident"], strict=True)
    axes.plot(at_s, mib, color=plotting.VIOLET, label="resident")
    axes.set_ylabel("MiB")
    axes.set_ylim(0, max(mib) * 1.15)
    axes.set_xlabel("seconds")
    axes.set_xlim(0, report["phases"][-1]["to_s"])


def _name_phases(axes: Axes, report: Mapping[str, Any]) -> None:
    for phase in report["phases"]:
        text = f"{phase['name']}\n{phase['rate'] / report['peak']:.2g}x"
        middle_s = (phase["from_s"] + phase["to_s"]) / 2
        axes.annotate(text, (middle_s, 0.97), xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=9)
