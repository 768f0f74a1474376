"""The reliability diagram as a picture."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from export.quality_fit import Bin


def plot_reliability(bins: Sequence[Bin], file: Path) -> None:
    """Write the figure of `diagram` as PNG."""
    mpl.use("Agg")
    figure = diagram(bins)
    figure.savefig(file, dpi=120, format="png")
    plt.close(figure)


def diagram(bins: Sequence[Bin]) -> Figure:
    """Plot the accepted share against the estimate, above the numbers of sentences."""
    figure, (shares, rows) = plt.subplots(2, 1, figsize=(6, 6), height_ratios=[4, 1], sharex=True, layout="constrained")
    filled = [each for each in bins if each.rows]
    shares.plot([0, 1], [0, 1], color="tab:gray", linewidth=1)
    shares.fill_between([0, 1], [-0.05, 0.95], [0.05, 1.05], color="tab:gray", alpha=0.2, label="within 5 points")
    estimated, accepted = [each.estimated for each in filled], [each.accepted for each in filled]
    errors = [1.96 * (each.estimated * (1 - each.estimated) / each.rows) ** 0.5 for each in filled]
    shares.errorbar(estimated, accepted, errors, fmt="o", color="tab:blue", label="accepted, and 95 % by chance")
    shares.set(xlim=(0, 1), ylim=(0, 1), ylabel="share of sentences that is accepted")
    shares.legend(loc="upper left")
    rows.bar([each.start for each in bins], [each.rows for each in bins], 0.1, align="edge", edgecolor="white")
    rows.set(xlabel="quality estimate", ylabel="sentences")
    figure.suptitle("Reliability of quality estimates, on held-out sentences")
    return figure
