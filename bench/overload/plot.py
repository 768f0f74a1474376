"""A storm as a picture: what was asked and what was answered, how fast, and the memory of the server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import plotting
from bench.overload.targets import P95_FACTOR


def plot(report: Mapping[str, Any], file: Path) -> None:
    """Draw three panels over one axis of time, the storm shaded."""
    timeline, steady_ms, storm = report["timeline"], report["steady_p95_ms"], report["phases"][1]
    with plotting.drawing((11, 8.2)) as figure:
        rates, latency, memory = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 1.6))
        plotting.draw_rates(rates, timeline)
        rates.axhline(report["peak"], color=plotting.GREEN, linewidth=1.2, linestyle="--", label="sustainable")
        for phase in report["phases"]:
            text = f"{phase['name']}\n{phase['rate'] / report['peak']:.2g}x"
            place = ((phase["from_s"] + phase["to_s"]) / 2, 0.97)
            rates.annotate(text, place, xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=9)
        bounds_ms = [(steady_ms, ":", "p95 at 80 %"), (P95_FACTOR * steady_ms, "--", f"{P95_FACTOR:g} times that")]
        plotting.draw_latencies(latency, timeline, bounds_ms)
        at_s, mib = zip(*report["resident"], strict=True)
        memory.plot(at_s, mib, color=plotting.VIOLET, label="resident")
        memory.set(xlabel="seconds", ylabel="MiB", xlim=(0, report["phases"][-1]["to_s"]), ylim=(0, max(mib) * 1.15))
        for axes in (rates, latency, memory):
            axes.axvspan(storm["from_s"], storm["to_s"], color=plotting.RED, alpha=0.06, linewidth=0)
            plotting.legend(axes)
        figure.savefig(file, dpi=120, format="png")
