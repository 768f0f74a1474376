"""Which words of a text became which of its translation; a plugin finds that, by the attention of the model."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Span: TypeAlias = tuple[int, int]  # characters [start, stop) of a text


class Side(NamedTuple):
    """A text, and what a model reads or writes of it.

    Attributes:
        text: without blanks at its ends.
        spans: of each token; they ascend, and those of the bytes of a character are the same.
    """

    text: str
    spans: Sequence[Span]


class Link(NamedTuple):
    """Two words of which one became the other.

    Attributes:
        source: where the one is in the source.
        target: where the other is in the translation.
        weight: how surely, 0 to 1; see `plugins.alignment`.
    """

    source: Span
    target: Span
    weight: float


class Alignment(Protocol):
    """The words of one segment and of its translation, and how surely each became each.

    Attributes:
        source_words, target_words: in the order of their texts.
        source_starts, source_stops, target_starts, target_stops: where each of these begins and ends.
        weights: float [target words, source words], 0 to 1.
    """

    source_words: list[Span]
    target_words: list[Span]
    source_starts: list[int]
    source_stops: list[int]
    target_starts: list[int]
    target_stops: list[int]
    weights: NDArray[np.float32]

    def source_run(self, start: int, stop: int) -> tuple[int, int]:
        """Find the words [first, last) of the source that some characters [start, stop) of it are part of."""

    def target_run(self, first: int, last: int, free: NDArray[np.bool_] | None = None) -> tuple[int, int] | None:
        """Find the run of words of the translation that some words [first, last) of the source became.

        Args:
            free: bool [target words]: those that may be in it; None: all.

        Returns:
            A run [first, last) of at least one word; None where no word is free.
        """

    def links(self, source_start: int = 0, target_start: int = 0) -> Iterator[Link]:
        """Yield which words became which, by target word; a word may have several links, or none.

        Args:
            source_start: where the source begins in the text that the places are to be of.
            target_start: where the translation begins, likewise.
        """

    def target_of(self, start: int, stop: int) -> Span | None:
        """Find the characters of the translation that became of some characters [start, stop) of the source.

        Returns:
            From the begin of a word to the end of one; None where there is no word on one of both sides.
        """
