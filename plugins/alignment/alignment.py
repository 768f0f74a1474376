"""The alignment of the words of a text and of its translation, by the attention of the model."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.scripts import UNSPACED
from service.text.alignment import Link, Side, Span

# Chosen on words of known translation in dev sentences , see bench/RESULTS.md. With 0.4, 94 % of the links of such
# words are right, and 0.5 % of the words lack theirs; more would lose links of words that became several. The words
# that some others became are one run, so there a word counts that is rather part of it than not.
_LEAST_WEIGHT: Final = 0.4
_LEAST_WEIGHT_IN_RUN: Final = 0.5

_WORD: Final = re.compile(r"\w+")
_IN_UNSPACED: Final = re.compile(f"[{UNSPACED}]+")


class Alignment:
    """The words of one segment and of its translation, and how surely each became each.

    A source word has a share of all attention that a target word gives to source words, and that target word one of all
    attention that the source word gets. The weight of the two words is the geometric mean of both shares: it is large
    where each is what the other mostly has to do with.

    Attributes:
        source_words, target_words: in the order of their texts.
        source_starts, source_stops, target_starts, target_stops: where each of these begins and ends.
        weights: float [target words, source words], 0 to 1.
    """

    def __init__(self, attention: NDArray[np.float32], source: Side, target: Side) -> None:
        """Make weights of words of the attention of tokens.

        Args:
            attention: float [target tokens, source tokens]: the attention of the step that chose a target token.
            source: what was read, without the marks around it.
            target: what was written, without the end of the sentence.
        """
        self.source_words = words(source)
        self.target_words = words(target)
        self.source_starts, self.source_stops = _borders(self.source_words)
        self.target_starts, self.target_stops = _borders(self.target_words)
        of_target = _overlaps(self.target_words, self.target_stops, target.spans)
        of_source = _overlaps(self.source_words, self.source_stops, source.spans)
        of_words = of_target.T @ np.asarray(attention, np.float32) @ of_source
        given = _shares(of_words, axis=1)
        self.weights: NDArray[np.float32] = np.sqrt(given * _shares(given, axis=0))

    def links(self, source_start: int = 0, target_start: int = 0) -> Iterator[Link]:
        """Yield which words became which, by target word; a word may have several links, or none.

        Args:
            source_start: where the source begins in the text that the places are to be of.
            target_start: where the translation begins, likewise.
        """
        for target, source in zip(*np.nonzero(self.weights >= _LEAST_WEIGHT), strict=True):
            yield Link(
                _moved(self.source_words[source], source_start),
                _moved(self.target_words[target], target_start),
                float(self.weights[target, source]),
            )

    def source_run(self, start: int, stop: int) -> tuple[int, int]:
        """Find the words [first, last) of the source that some characters [start, stop) of it are part of."""
        first = bisect_right(self.source_stops, start)
        return first, max(first, bisect_left(self.source_starts, stop))

    def target_run(self, first: int, last: int, free: NDArray[np.bool_] | None = None) -> tuple[int, int] | None:
        """Find the words of the translation that some words of the source became.

        Of all runs of words it is the one with most that belong to these, and fewest that do not; so a word far from
        the others does not count.

        Args:
            first: word of the source ...
            last: ... and the word behind the last one.
            free: bool [target words]: those that may be in it; None: all.

        Returns:
            A run [first, last) of at least one word; None where no word is free.
        """
        gains = self.weights[:, first:last].sum(axis=1, dtype=np.float64) - _LEAST_WEIGHT_IN_RUN
        if free is not None:
            gains[~free] = -1.0 - gains.clip(0).sum()  # more than all others gain together
        if not len(gains):
            return None
        sums = np.concatenate(([0.0], np.cumsum(gains)))
        # Of each end, what the best run to it gains; then the run itself.
        last_word = int(np.argmax(sums[1:] - np.minimum.accumulate(sums[:-1])))
        first_word = int(np.argmin(sums[: last_word + 1]))
        if free is not None and not free[first_word]:
            return None
        return first_word, last_word + 1

    def target_of(self, start: int, stop: int) -> Span | None:
        """Find the characters of the translation that became of some characters of the source.

        Returns:
            From the begin of a word to the end of one; None where there is no word on one of both sides.
        """
        first, last = self.source_run(start, stop)
        run = self.target_run(first, last) if first < last else None
        return run and (self.target_words[run[0]][0], self.target_words[run[1] - 1][1])


def _moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _shares(amounts: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Divide amounts by their sums along an axis; where there is nothing, each has 0."""
    totals = amounts.sum(axis=axis, keepdims=True)
    shares = np.zeros_like(amounts)
    np.divide(amounts, totals, out=shares, where=totals > 0)
    return shares


def words(side: Side) -> list[Span]:
    """List the words of a text: letters and digits in a row, and single tokens where a script has no blanks."""
    text, found = side.text, list[Span]()
    for word in _WORD.finditer(text):
        start, stop = word.span()
        # Combining marks, and what joins characters, are part of the word.
        while stop < len(text) and (text[stop] in "\u200c\u200d" or unicodedata.category(text[stop])[0] == "M"):
            stop += 1
        if found and found[-1][1] == start:  # they are joined by marks, as in Hindi
            start = found.pop()[0]
        found.append((start, stop))
    if _IN_UNSPACED.search(text) is None:
        return found
    return [part for word in found for part in _parts(side, *word)]


def _borders(words: Sequence[Span]) -> tuple[list[int], list[int]]:
    """List where each word begins, and where each ends."""
    return [start for start, _ in words], [stop for _, stop in words]


def _parts(side: Side, start: int, stop: int) -> Iterator[Span]:
    """Yield a word, in parts where it is of a script without blanks."""
    cuts = {stop}
    for unspaced in _IN_UNSPACED.finditer(side.text, start, stop):
        cuts |= {unspaced.start(), unspaced.end()}
        following = bisect_right(side.spans, unspaced.start(), key=lambda span: span[0])
        while following < len(side.spans) and (cut := side.spans[following][0]) < unspaced.end():
            if unicodedata.category(side.text[cut])[0] != "M":  # a mark is part of the letter before it
                cuts.add(cut)
            following += 1
    for cut in sorted(cuts - {start}):
        yield start, cut
        start = cut


def _overlaps(words: Sequence[Span], stops: Sequence[int], spans: Sequence[Span]) -> NDArray[np.float32]:
    """Compute [tokens, words]: how much of each token is part of each word; a token of no word has 0."""
    parts = np.zeros((len(spans), len(words)), np.float32)
    for token, (start, stop) in enumerate(spans):
        word = bisect_right(stops, start)
        while word < len(words) and words[word][0] < stop:
            parts[token, word] = min(stop, words[word][1]) - max(start, words[word][0])
            word += 1
    return _shares(parts, axis=1)
