from matplotlib import pyplot as plt

from model.plot import learning_curve
from model.state import Progress


def test_the_learning_curve_shows_losses_and_bleu_from_zero() -> None:
    progress = Progress(
        step=4,
        best_bleu=12.5,
        curve=[(1, 5.0), (2, 4.0), (3, 3.0), (4, 2.5)],
        evaluations=[(2, 8.0), (4, 12.5)],
        dev_losses=[(2, 4.5), (4, 4.0)],
    )
    figure = learning_curve(progress)
    losses, bleu = figure.axes
    labels = [line.get_label() for axis in figure.axes for line in axis.get_lines()]
    assert labels == ["training loss (smoothed)", "dev loss (averaged weights)", "dev BLEU (averaged weights)"]
    assert list(losses.get_lines()[1].get_ydata()) == [4.5, 4.0]
    assert bleu.get_ylim()[0] == 0
    assert "12.50" in figure.get_suptitle()
    plt.close(figure)


def test_a_run_without_an_evaluation_has_a_curve_too() -> None:
    figure = learning_curve(Progress(step=1, curve=[(1, 5.0)]))
    assert figure.axes[1].get_ylim()[0] == 0
    plt.close(figure)
