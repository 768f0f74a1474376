"""Pictures of attention; needs matplotlib, and no torch."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

mpl.use("Agg")  # draws to files, since there may be no screen


def save(figure: Figure, file: Path) -> None:
    """Write a figure as PNG, and let go of it."""
    figure.savefig(file, dpi=100, format="png")
    plt.close(figure)


def alignment_figure(weights: ArrayLike, source: Sequence[str], target: Sequence[str]) -> Figure:
    """Draw the attention to source tokens at the choice of each token of a translation.

    Args:
        weights: float [target, source]; each row adds up to 1.
        source: the tokens of the source.
        target: the tokens of the translation, counted from one.
    """
    size = 2.5 + 0.25 * len(source), 2.0 + 0.25 * len(target)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    heatmap(axis, np.asarray(weights, np.float32), target, source)
    axis.set_title("mean of the alignment heads", fontsize=8)
    figure.colorbar(axis.images[0], ax=axis)
    return figure


def heatmap(axis: Axes, weights: NDArray[np.float32], queries: Sequence[str], keys: Sequence[str]) -> None:
    """Draw the keys that each query attends to: float [queries, keys]."""
    axis.imshow(weights, vmin=0, vmax=1, cmap="viridis", aspect="auto")
    axis.set_xticks(range(len(keys)), keys, rotation=90, fontsize=6)
    axis.set_yticks(range(len(queries)), queries, fontsize=6)
