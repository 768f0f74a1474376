"""A storm as a picture: what was asked and what was answered, how fast, and the memory of the server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bench import plotting
from bench.overload.targets import P95_FACTOR


def plot(report: Mapping[str, Any], file: Path) -> None:
    """Draw three panels over one axis of time, the storm shaded."""
    with plotting.picture(file, (11, 8.2)) as figure:
        rates, latency, memory = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1.6))
        _rates(rates, report)
        _latency(latency, report)
        _memory(memory, report)
        for axes in (rates, latency, memory):
            _shade(axes, report)
            plotting.legend(axes)
        _name_phases(rates, report)
        memory.set_xlabel("seconds")
        memory.set_xlim(0, report["phases"][-1]["to_s"])


def _rates(axes: Axes, report: Mapping[str, Any]) -> None:
    timeline = report["timeline"]
    middles = plotting.middles(timeline)

    def per_second(name: str) -> Any:
        return np.array(timeline[name]) / timeline["bin_s"]

    axes.fill_between(middles, per_second("answered"), color=plotting.GREEN, alpha=0.15, linewidth=0)
    axes.plot(middles, per_second("answered"), color=plotting.GREEN, label="answered")
    axes.plot(middles, per_second("rejected"), color=plotting.AMBER, label="refused")
    failed = per_second("failed") + per_second("cancelled")
    if failed.any():
        axes.plot(middles, failed, color=plotting.RED, label="failed")
    axes.plot(middles, per_second("offered"), color=plotting.GREY, linewidth=1, label="due")
    axes.axhline(report["peak"], color=plotting.GREEN, linewidth=1.2, linestyle="--", label="sustainable")
    axes.set_ylabel("requests/s")
    axes.set_ylim(bottom=0)


def _latency(axes: Axes, report: Mapping[str, Any]) -> None:
    timeline, drawn = report["timeline"], []
    for name in ("p50_ms", "p95_ms"):
        values, color = plotting.floats(timeline[name]), plotting.PERCENTILES[name]
        drawn += values
        axes.plot(plotting.middles(timeline), values, color=color, label=f"{name.removesuffix('_ms')} of the answered")
    for factor, label in ((1.0, "p95 at 80 %"), (P95_FACTOR, f"{P95_FACTOR:g} times that")):
        bound_ms = factor * report["steady_p95_ms"]
        drawn.append(bound_ms)
        style = "--" if factor > 1 else ":"
        axes.axhline(bound_ms, color=plotting.AMBER, linewidth=1.2, linestyle=style, label=label)
    axes.set_ylabel("latency, ms")
    plotting.scale(axes, drawn)


def _memory(axes: Axes, report: Mapping[str, Any]) -> None:
    at_s, mib = zip(*report["resident"], strict=True)
    axes.plot(at_s, mib, color=plotting.VIOLET, label="resident")
    axes.set_ylabel("MiB")
    axes.set_ylim(0, max(mib) * 1.15)


def _shade(axes: Axes, report: Mapping[str, Any]) -> None:
    for phase in report["phases"]:
        if phase["name"] == "storm":
            axes.axvspan(phase["from_s"], phase["to_s"], color=plotting.RED, alpha=0.06, linewidth=0)


def _name_phases(axes: Axes, report: Mapping[str, Any]) -> None:
    for phase in report["phases"]:
        text = f"{phase['name']}\n{phase['rate'] / report['peak']:.2g}x"
        middle_s = (phase["from_s"] + phase["to_s"]) / 2
        axes.annotate(text, (middle_s, 0.97), xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=9)
