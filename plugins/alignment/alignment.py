"""Word alignment between a text and its translation, computed from the attention of the model."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.scripts import UNSPACED
from service.rewriting import Span
from service.text.alignment import Link, Side

# Chosen on words with known translations in dev sentences, see bench/RESULTS.md. With 0.4, 94 % of their links are
# right, and 0.5 % of the words lack their link; a higher value would lose links of words with a translation of several
# words. In a run of words, a word counts if it belongs to the run more than not.
_LEAST_WEIGHT: Final = 0.4
_LEAST_WEIGHT_IN_RUN: Final = 0.5

_WORD: Final = re.compile(r"(?<!_)_*[^\W_]\w*")  # underscores alone are no word
_IN_UNSPACED: Final = re.compile(f"[{UNSPACED}]+")


class Alignment:
    """The words of one segment and of its translation, with a weight for each pair of words.

    For each pair there are two shares: the source word's share of the target word's attention to all source words, and
    the target word's part of the attention that the source word gets from all target words. The weight is the geometric
    mean of both: it is large if each word is mainly connected with the other.

    Attributes:
        source_words, target_words: the words, in the order of their texts.
        source_starts, source_stops, target_starts, target_stops: where each of these words begins and ends.
        weights: float [target words, source words], 0 to 1.
    """

    def __init__(
        self,
        attention: NDArray[np.float32],
        source: Side,
        target: Side,
        whole: tuple[Sequence[Span], Sequence[Span]] = ((), ()),
    ) -> None:
        """Compute weights of words from the attention of tokens.

        Args:
            attention: float [target tokens, source tokens]: each row is from the step that chose the target token.
            source: the source text and its tokens, without the marks around it.
            target: the translation and its tokens, without the end-of-sentence token.
            whole: spans of the source and of the translation that count as one word each.
        """
        self._made_of = attention, source, target
        self.source_words, self.target_words = words(source), words(target)
        if any(whole):
            self.source_words, self.target_words = map(joined, (self.source_words, self.target_words), whole)
        self.source_starts, self.source_stops = _borders(self.source_words)
        self.target_starts, self.target_stops = _borders(self.target_words)
        of_target = _overlaps(self.target_words, self.target_stops, target.spans)
        of_source = _overlaps(self.source_words, self.source_stops, source.spans)
        of_words = of_target.T @ np.asarray(attention, np.float32) @ of_source
        given = _shares(of_words, axis=1)
        self.weights: NDArray[np.float32] = np.sqrt(given * _shares(given, axis=0))

    def joined(self, source: Sequence[Span], target: Sequence[Span]) -> "Alignment":
        """Count spans of the source and of the translation as one word each."""
        return Alignment(*self._made_of, (source, target))

    def links(self, source_start: int = 0, target_start: int = 0) -> Iterator[Link]:
        """Yield the pairs of corresponding words, by target word; a word may have several links, or none.

        Args:
            source_start: offset of the source in the text for which positions are given.
            target_start: offset of the translation in its text, likewise.
        """
        for target, source in zip(*np.nonzero(self.weights >= _LEAST_WEIGHT), strict=True):
            yield Link(
                _moved(self.source_words[source], source_start),
                _moved(self.target_words[target], target_start),
                float(self.weights[target, source]),
            )

    def source_run(self, start: int, stop: int) -> tuple[int, int]:
        """Find the source words [first, last) that overlap the characters [start, stop) of the source."""
        first = bisect_right(self.source_stops, start)
        return first, max(first, bisect_left(self.source_starts, stop))

    def target_run(self, first: int, last: int, free: NDArray[np.bool_] | None = None) -> tuple[int, int] | None:
        """Find the words of the translation that correspond to some words of the source.

        The result is the run with the most words that correspond, and the fewest others; so a corresponding word far
        from the others is left out.

        Args:
            first: the first word of the source ...
            last: ... and the index after the last word.
            free: bool [target words]: the words that the run may contain; None: all.

        Returns:
            A run [first, last) of at least one word; None if no word is free.
        """
        gains = self.weights[:, first:last].sum(axis=1, dtype=np.float64) - _LEAST_WEIGHT_IN_RUN
        if free is not None:
            gains[~free] = -1.0 - gains.clip(0).sum()  # outweighs all possible gains together
        if not len(gains):
            return None
        sums = np.concatenate(([0.0], np.cumsum(gains)))
        # For each end, the gain of the best run up to it; then the run itself.
        last_word = int(np.argmax(sums[1:] - np.minimum.accumulate(sums[:-1])))
        first_word = int(np.argmin(sums[: last_word + 1]))
        if free is not None and not free[first_word]:
            return None
        return first_word, last_word + 1

    def target_of(self, start: int, stop: int) -> Span | None:
        """Find the characters of the translation that correspond to some characters of the source.

        Returns:
            From the start of a word to the end of a word; None if either side has no word.
        """
        first, last = self.source_run(start, stop)
        run = self.target_run(first, last) if first < last else None
        return run and (self.target_words[run[0]][0], self.target_words[run[1] - 1][1])


def _moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _shares(amounts: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Divide amounts by their sums along an axis; shares of a sum of 0 are 0."""
    totals = amounts.sum(axis=axis, keepdims=True)
    shares = np.zeros_like(amounts)
    np.divide(amounts, totals, out=shares, where=totals > 0)
    return shares


def words(side: Side) -> list[Span]:
    """List the words of a text: runs of letters and digits; in a script without blanks, single tokens."""
    text, found = side.text, list[Span]()
    for word in _WORD.finditer(text):
        start, stop = word.span()
        # Combining marks and joiners are part of the word.
        while stop < len(text) and (text[stop] in "\u200c\u200d" or unicodedata.category(text[stop])[0] == "M"):
            stop += 1
        if found and found[-1][1] == start:  # two parts joined by marks, as in Hindi
            start = found.pop()[0]
        found.append((start, stop))
    if _IN_UNSPACED.search(text) is None:
        return found
    return [part for word in found for part in _parts(side, *word)]


def joined(words: Iterable[Span], whole: Iterable[Span]) -> list[Span]:
    """List words, and spans that count as one word each; a word that overlaps a span is a part of it."""
    found: list[Span] = []
    for start, stop in sorted([*words, *whole]):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


def _borders(words: Sequence[Span]) -> tuple[list[int], list[int]]:
    """List the starts and the ends of words."""
    return [start for start, _ in words], [stop for _, stop in words]


def _parts(side: Side, start: int, stop: int) -> Iterator[Span]:
    """Yield a word; in a script without blanks, yield its parts."""
    cuts = {stop}
    for unspaced in _IN_UNSPACED.finditer(side.text, start, stop):
        cuts |= {unspaced.start(), unspaced.end()}
        following = bisect_right(side.spans, unspaced.start(), key=lambda span: span[0])
        while following < len(side.spans) and (cut := side.spans[following][0]) < unspaced.end():
            if unicodedata.category(side.text[cut])[0] != "M":  # a mark belongs to the letter before it
                cuts.add(cut)
            following += 1
    for cut in sorted(cuts - {start}):
        yield start, cut
        start = cut


def _overlaps(words: Sequence[Span], stops: Sequence[int], spans: Sequence[Span]) -> NDArray[np.float32]:
    """Compute float [tokens, words]: the share of each token in each word; 0 for a token outside all words."""
    parts = np.zeros((len(spans), len(words)), np.float32)
    for token, (start, stop) in enumerate(spans):
        word = bisect_right(stops, start)
        while word < len(words) and words[word][0] < stop:
            parts[token, word] = min(stop, words[word][1]) - max(start, words[word][0])
            word += 1
    return _shares(parts, axis=1)
