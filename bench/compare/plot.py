"""A comparison as a picture: how many times as fast as each peer, with the spread over the rounds."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from bench import plotting
from bench.compare.outcome import Outcome

_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def plot(outcomes: Sequence[Outcome], file: Path) -> None:
    """Draw a point an outcome: its median, and from the smallest to the largest ratio of its rounds."""
    with plotting.picture(file, (9, 0.55 * len(outcomes) + 1.4)) as figure:
        axes = figure.subplots()
        for place, outcome in enumerate(reversed(outcomes)):
            _point(axes, place, outcome)
        axes.set_xscale("log")
        axes.axvline(1, color=plotting.GREY, linewidth=1)
        axes.xaxis.set_major_locator(FixedLocator(_TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.grid(visible=False, axis="y")
        axes.set_yticks(range(len(outcomes)), [_label(outcome) for outcome in reversed(outcomes)])
        axes.set_ylim(-0.6, len(outcomes) - 0.2)
        axes.margins(x=0.1)
        axes.set_xlabel("Dragoman, times as fast as the peer: median and range of the rounds (right of 1: faster)")


def _point(axes: Axes, place: int, outcome: Outcome) -> None:
    middle, low, high = times_as_fast(outcome)
    color = plotting.GREEN if middle >= 1 else plotting.RED
    spread = [[middle - low], [high - middle]]
    axes.errorbar(middle, place, xerr=spread, fmt="o", color=color, capsize=4, linewidth=2)
    axes.annotate(f"{middle:.2f}", (middle, place), xytext=(0, 8), textcoords="offset points", ha="center")


def times_as_fast(outcome: Outcome) -> tuple[float, float, float]:
    """Compute median, lowest and highest ratio, above 1 where ours is faster."""
    ratio = outcome.ratio
    if outcome.higher_is_better:
        return ratio.median, ratio.low, ratio.high
    return 1 / ratio.median, 1 / ratio.high, 1 / ratio.low


def _label(outcome: Outcome) -> str:
    return f"{outcome.model}, {outcome.part}\n{outcome.theirs.name} {outcome.theirs.precision}"
