"""The alignment of the words of a text and its translation; a plugin finds it, by the attention of the model."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from service.rewriting import Span


class Side(NamedTuple):
    """A text, with the tokens that a model reads or writes for it.

    Attributes:
        text: without blanks at its ends.
        spans: span of each token, in rising order; tokens for bytes of one character have the same span.
    """

    text: str
    spans: Sequence[Span]


class Link(NamedTuple):
    """A word of the source, and a word of the translation that it became.

    Attributes:
        source: where the word is in the source.
        target: where the other word is in the translation.
        weight: how sure the link is, 0 to 1; see `plugins.alignment`.
    """

    source: Span
    target: Span
    weight: float


class Alignment(Protocol):
    """The words of one segment and of its translation, with a weight for each pair.

    Attributes:
        source_words, target_words: in the order of their texts.
        source_starts, source_stops, target_starts, target_stops: where each word begins and ends.
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
        """Find the words [first, last) of the source that have some of its characters [start, stop)."""

    def target_run(self, first: int, last: int, free: NDArray[np.bool_] | None = None) -> tuple[int, int] | None:
        """Find the run of words of the translation that words [first, last) of the source became.

        Args:
            free: bool [target words]: the words that may be in the run; None: all words.

        Returns:
            A run [first, last) of at least one word; None where no word is free.
        """

    def joined(self, source: Sequence[Span], target: Sequence[Span]) -> "Alignment":
        """Count each of some spans of both texts as one word."""

    def links(self, source_start: int = 0, target_start: int = 0) -> Iterator[Link]:
        """Yield the links between words, by target word; a word may have several links, or none.

        Args:
            source_start: where the source begins in the whole text, whose positions the links have.
            target_start: where the translation begins in the whole translation, likewise.
        """

    def target_of(self, start: int, stop: int) -> Span | None:
        """Find the characters of the translation that characters [start, stop) of the source became.

        Returns:
            A span from the start of a word to the end of a word; None where one of the two texts has no word there.
        """
