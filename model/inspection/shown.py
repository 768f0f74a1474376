"""The output that is the same for checkpoints and bundles; needs no torch."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from dragoman.errors import DataError
from dragoman.language_marks import Languages


def sides(known: Languages) -> list[tuple[str, str]]:
    """Give the table rows for the languages of a model."""
    return [("source languages", ", ".join(known.sources)), ("target languages", ", ".join(known.targets))]


def print_table(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        print(f"{name.ljust(width)}  {value}")


def check_length(flag: str, tokens: int, most: int) -> None:
    """Refuse a text with more tokens than the model takes; raises DataError, which names the flag."""
    if tokens > most:
        raise DataError(f"{flag} has {tokens} tokens, more than the {most} of the model")


def draw_alignment(weights: ArrayLike, source: Sequence[str], target: Sequence[str], file: Path) -> None:
    """Draw the attention of each token of a translation to the source tokens: float [target, source].

    Raises:
        DataError: the translation has no tokens.
    """
    from model.inspection import heatmaps  # imported here: matplotlib takes a second

    if not target:
        raise DataError("--alignment: there is nothing to draw, the translation has no tokens")
    heatmaps.save(heatmaps.alignment_figure(weights, source, target), file)
