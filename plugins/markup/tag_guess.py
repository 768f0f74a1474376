"""Places tags in a translation without word alignment.

A tag goes beside the word beside which it stood, if the translation has the same word, such as a name or a number;
otherwise to the edge of a word at the same relative position. Tags keep their order, so nested tags stay nested.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from plugins.alignment.alignment import joined
from plugins.markup.mark import InlineTag, Kept, Placed, cuts, cuts_word, is_at, places_of
from service.rewriting import Span

_WORD: Final = re.compile(r"\w+")


def placed(text: str, marks: Sequence[InlineTag], translation: str, kept: Kept = ((), ())) -> Iterator[Placed]:
    """Yield the places of the marks, left to right.

    Args:
        kept: spans of the text and of the translation that count as one word each.
    """
    if not marks:
        return
    guide = _Guide(text, translation, kept)
    before = stop = 0
    for mark in marks:
        content = text[mark.place : mark.place + mark.width]
        found = guide.content(content, mark.place, stop) if content else None
        if found is not None:
            start, stop = found, found + len(content)
        elif mark.closes:
            empty = guide.after(mark.place) <= stop and _WORD.search(text, before, mark.place)
            start = stop = guide.word_end(stop) if empty else max(guide.after(mark.place), stop)
        else:
            start = stop = max(guide.before(mark.place), stop)
        before = mark.place
        yield Placed(start, stop, mark.source, is_added=content != "" and found is None)


class _Guide:
    """Maps places in the text to places in the translation."""

    def __init__(self, text: str, translation: str, kept: Kept) -> None:
        self._text = text
        self._translation = translation
        self._kept = kept
        self._words = joined(_words(text), kept[0])
        words = joined(_words(translation), kept[1])
        self._starts = [start for start, _ in words] or [0]
        self._ends = [stop for _, stop in words] or [len(translation)]
        self._contents: dict[tuple[str, bool, bool], tuple[list[int], list[int]]] = {}
        ours, theirs = _singles(text, self._words), _singles(translation, words)
        self._same = {ours[word]: theirs[word] for word in ours.keys() & theirs.keys()}

    def content(self, content: str, place: int, least: int) -> int | None:
        """Find a mark's content in the translation: the same occurrence if the counts are equal, else the next one."""
        span = place, place + len(content)
        may_cut, in_words = cuts(*span, self._kept[0]), cuts_word(*span, self._text)
        key = content, may_cut, in_words
        if key not in self._contents:
            ours, theirs = ((), ()) if may_cut else self._kept
            self._contents[key] = (
                places_of(content, self._text, ours, in_words=in_words),
                places_of(content, self._translation, theirs, in_words=in_words),
            )
        mine, others = self._contents[key]
        if len(mine) == len(others) and (same := others[bisect_left(mine, place)]) >= least:
            return same
        following = bisect_left(others, least)
        return others[following] if following < len(others) else None

    def before(self, place: int) -> int:
        """Find the start of the text that follows a place."""
        if self._text == self._translation:
            return place
        following = bisect_right(self._words, place, key=lambda word: word[1])
        if following == len(self._words):
            return self._ends[-1]
        start = self._words[following][0]
        there = self._same.get(start)
        if there is None:
            there = _nearest(self._starts, self._proportional(place))
        elif start < place:
            return there + place - start
        lead = self._text[place:start]
        return there - len(lead) if is_at(lead, there - len(lead), self._translation, self._kept[1]) else there

    def after(self, place: int) -> int:
        """Find the end of the text that precedes a place."""
        if self._text == self._translation:
            return place
        preceding = bisect_left(self._words, place, key=lambda word: word[0]) - 1
        if preceding < 0:
            return 0
        start, end = self._words[preceding]
        there = self._same.get(start)
        if there is None:
            there = _nearest(self._ends, self._proportional(place))
        elif place < end:
            return there + place - start
        else:
            there += end - start
        trail = self._text[end:place]
        return there + len(trail) if is_at(trail, there, self._translation, self._kept[1]) else there

    def word_end(self, place: int) -> int:
        """Find the end of the translation's word at a place, or of the next word."""
        following = bisect_right(self._ends, place)
        return self._ends[following] if following < len(self._ends) else len(self._translation)

    def _proportional(self, place: int) -> float:
        return place / len(self._text) * len(self._translation)


def _words(text: str) -> Iterator[Span]:
    return (word.span() for word in _WORD.finditer(text))


def _singles(text: str, words: Iterable[Span]) -> dict[str, int]:
    """Find the words that occur once in a text, with their starts."""
    places: dict[str, int] = {}
    for start, stop in words:
        word = text[start:stop]
        places[word] = -1 if word in places else start
    return {word: place for word, place in places.items() if place >= 0}


def _nearest(places: Sequence[int], wanted: float) -> int:
    """Find the place nearest to the wanted one; `places` ascend, and are not empty."""
    following = bisect_left(places, wanted)
    return min(places[max(following - 1, 0) : following + 1], key=lambda place: abs(place - wanted))
