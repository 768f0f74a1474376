"""A picture of the learning curve."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from model.state import Progress

SMOOTHING = 0.9


def plot_learning_curve(progress: Progress, file: Path) -> None:
    """Write the figure of `learning_curve` as PNG."""
    mpl.use("Agg")
    figure = learning_curve(progress)
    partial = file.with_suffix(".partial")  # viewers during the run never see an incomplete picture
    figure.savefig(partial, dpi=120, format="png")
    partial.replace(file)
    plt.close(figure)


def learning_curve(progress: Progress) -> Figure:
    """Plot training loss (smoothed), dev loss and dev BLEU against the step; BLEU from 0."""
    figure, loss_axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    smooth, losses = None, []
    for _, loss in progress.curve:
        smooth = loss if smooth is None else SMOOTHING * smooth + (1 - SMOOTHING) * loss
        losses.append(smooth)
    loss_axis.plot([step for step, _ in progress.curve], losses, color="tab:gray", label="training loss (smoothed)")
    loss_axis.plot(*_columns(progress.dev_losses), "o-", color="tab:orange", label="dev loss (averaged weights)")
    loss_axis.set_xlabel("step")
    loss_axis.set_ylabel("label-smoothed cross-entropy (nats)")
    bleu_axis = loss_axis.twinx()
    bleu_axis.plot(*_columns(progress.evaluations), "o-", color="tab:blue", label="dev BLEU (averaged weights)")
    bleu_axis.set_ylim(bottom=0)
    bleu_axis.set_ylabel("dev BLEU", color="tab:blue")
    figure.suptitle(f"Learning curve: best dev BLEU {max(progress.best_bleu, 0):.2f} in {progress.step:,} steps")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _columns(rows: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in rows], [value for _, value in rows]
