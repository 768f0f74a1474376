"""The learning curve as a picture."""

from pathlib import Path

import matplotlib as mpl

from model.state import Progress

SMOOTHING = 0.9


def plot_learning_curve(progress: Progress, file: Path) -> None:
    """Training loss (smoothed) and dev BLEU against the step, as PNG."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, loss_axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    smooth, losses = None, []
    for _, loss in progress.curve:
        smooth = loss if smooth is None else SMOOTHING * smooth + (1 - SMOOTHING) * loss
        losses.append(smooth)
    loss_axis.plot([step for step, _ in progress.curve], losses, color="tab:gray", label="training loss")
    loss_axis.set_xlabel("step")
    loss_axis.set_ylabel("label-smoothed cross-entropy (nats)")
    bleu_axis = loss_axis.twinx()
    bleu_axis.plot(
        *zip(*progress.evaluations, strict=True) if progress.evaluations else ([], []), "o-", color="tab:blue"
    )
    bleu_axis.set_ylabel("dev BLEU (averaged weights)", color="tab:blue")
    figure.savefig(file, dpi=120)
    plt.close(figure)
