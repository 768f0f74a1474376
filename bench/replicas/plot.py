"""Replicas as a picture: what a call costs beside others, the latency of fleets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from bench import plotting
from bench.replicas.balancing import BALANCERS
from bench.replicas.measure import Measured
from bench.replicas.scenarios import SLOW_SHARE, STEADY_SHARE, Steady

_COLORS: Final = dict(zip(BALANCERS, (plotting.GREY, plotting.BLUE, plotting.AMBER, plotting.GREEN), strict=True))


def plot(measured: Measured, steady: Sequence[Steady], file: Path) -> None:
    """Draw three panels.

    Args:
        measured: of real replicas.
        steady: simulated.
        file: the PNG.
    """
    with plotting.picture(file, (12, 4.2)) as figure:
        cost, alike, mixed = figure.subplots(1, 3)
        _cost(cost, measured)
        for name, color in _COLORS.items():
            for axes, has_slow in ((alike, False), (mixed, True)):
                p95_ms = {
                    row.replicas: 1e3 * row.p95_s for row in steady if (row.balancer, row.slow > 0) == (name, has_slow)
                }
                axes.plot(p95_ms.keys(), p95_ms.values(), color=color, marker="o", markersize=3, label=name)
        _fleets(alike, f"p95 at {STEADY_SHARE:.0%} of the peak, ms (simulated)")
        _fleets(mixed, f"the same, {SLOW_SHARE:.0%} of the replicas at half speed")
        alike.legend(loc="lower right")


def _cost(axes: Axes, measured: Measured) -> None:
    inside = [each.inside for each in measured.occupancies]
    axes.plot(inside, [1e3 * each.cost_s for each in measured.occupancies], color=plotting.VIOLET, marker="o")
    axes.set_title("processor time of a call, ms (measured)", fontsize=10)
    axes.set_xlabel("calls in a replica at the same time")
    axes.set_ylim(bottom=0)


def _fleets(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("replicas")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
