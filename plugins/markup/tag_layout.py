"""Places tags in a translation with word alignment.

Each element is put around the words that correspond to its own words, inside its parent element. If elements would
overlap, the element with the higher alignment weight chooses first. Sibling elements may change their order, as their
words do; all other marks keep their order among their siblings.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

import numpy as np

from plugins.markup.mark import InlineTag, Kept, Placed, cuts, cuts_word, is_at, partners, places_of
from service.rewriting import Span
from service.text.alignment import Alignment

_TARGET: Final = attrgetter("target")
_SHARE: Final = itemgetter(0)


def placed(
    text: str, marks: Sequence[InlineTag], translation: str, alignment: Alignment, kept: Kept = ((), ())
) -> Iterator[Placed]:
    """Yield the places of the marks, left to right; see `tag_guess.placed`."""
    whole = _tree(text, marks)
    whole.target = 0, len(translation)
    pair = _Pair(text, translation, alignment.joined(*kept) if any(kept) else alignment, kept)
    pending = [whole]
    while pending:
        element = pending.pop()
        _Level(element, pair).place()
        pending += [item for item in element.inside if item.inside]
    return _in_order(whole)


@dataclass(slots=True, eq=False)
class _Item:
    """An element with its content, or a mark that is no element.

    Attributes:
        source: the span of the text that it contains.
        before: the source of the mark, or of the element's begin ...
        after: ... and of its end; None: no element.
        closes: see :class:`InlineTag`.
        inside: the items in it, in the order of the text.
        target: the span of the translation that it contains or replaces.
    """

    source: Span
    before: str
    after: str | None = None
    closes: bool = False
    inside: list["_Item"] = field(default_factory=list)
    target: Span = (0, 0)


def _tree(text: str, marks: Sequence[InlineTag]) -> _Item:
    """Make an element for the whole text, with all marks in it."""
    whole = _Item((0, len(text)), "")
    open_items = [whole]
    for index, (mark, partner) in enumerate(zip(marks, partners(marks), strict=True)):
        if partner is None:
            item = _Item((mark.place, mark.place + mark.width), mark.source, closes=mark.closes)
            open_items[-1].inside.append(item)
        elif partner > index:
            item = _Item((mark.place, marks[partner].place), mark.source, marks[partner].source)
            open_items[-1].inside.append(item)
            open_items.append(item)
        else:
            open_items.pop()
    return whole


def _in_order(whole: _Item) -> Iterator[Placed]:
    """Yield the marks inside an element, by their places in the translation."""
    pending: list[_Item | Placed] = list(reversed(whole.inside))
    while pending:
        item = pending.pop()
        if isinstance(item, Placed):
            yield item
            continue
        start, stop = item.target
        if item.after is None:
            yield Placed(start, stop, item.before, is_added=start == stop and item.source[0] < item.source[1])
        else:
            yield Placed(start, start, item.before)
            pending.append(Placed(stop, stop, item.after))
            pending += reversed(item.inside)


class _Pair:
    """A text and its translation, with their word alignment."""

    def __init__(self, text: str, translation: str, alignment: Alignment, kept: Kept) -> None:
        self.text = text
        self.translation = translation
        self.alignment = alignment
        self.kept = kept
        self._contents: dict[tuple[str, bool, bool], list[int]] = {}

    def words_of(self, item: _Item) -> tuple[int, int] | None:
        """Find the words [first, last) of the text that an item contains, wholly or in part; None if there are none."""
        first, last = self.alignment.source_run(*item.source)
        return (first, last) if first < last and item.source[0] < item.source[1] else None

    def before(self, place: int, ours: int, theirs: int) -> int:
        """Find the place before a word of the translation, or inside it, that corresponds to a place in the text."""
        (start, stop), start_there = self.alignment.source_words[ours], self.alignment.target_words[theirs][0]
        if start < place < stop:
            return start_there + (place - start if self._same(ours, theirs) else 0)
        lead = self.text[place:start]
        return start_there - (len(lead) if is_at(lead, start_there - len(lead), self.translation, self.kept[1]) else 0)

    def after(self, place: int, ours: int, theirs: int) -> int:
        """Find the place after a word of the translation, or inside it, that corresponds to a place in the text."""
        (start, stop), stop_there = self.alignment.source_words[ours], self.alignment.target_words[theirs][1]
        if start < place < stop:
            return stop_there - (stop - place if self._same(ours, theirs) else 0)
        trail = self.text[stop:place]
        return stop_there + (len(trail) if is_at(trail, stop_there, self.translation, self.kept[1]) else 0)

    def inside(self, span: Span, ours: int, theirs: int) -> Span | None:
        """Find a part of a word in the translation; None if the span is no part, or the word differs there."""
        (start, stop), start_there = self.alignment.source_words[ours], self.alignment.target_words[theirs][0]
        if not (start <= span[0] and span[1] <= stop and span != (start, stop) and self._same(ours, theirs)):
            return None
        return start_there + span[0] - start, start_there + span[1] - start

    def nearest(self, source: Span, wanted: int) -> Span | None:
        """Find the occurrence of a part of the text in the translation closest to a place; None if there is none."""
        content, may_cut = self.text[slice(*source)], cuts(*source, self.kept[0])
        in_words = cuts_word(*source, self.text)
        key = content, may_cut, in_words
        if key not in self._contents:
            found = places_of(content, self.translation, () if may_cut else self.kept[1], in_words=in_words)
            self._contents[key] = found
        starts = self._contents[key]
        following = bisect_left(starts, wanted)
        beside = starts[max(following - 1, 0) : following + 1]
        start = min(beside, key=lambda place: abs(place - wanted), default=None)
        return None if start is None else (start, start + len(content))

    def _same(self, ours: int, theirs: int) -> bool:
        mine, other = self.alignment.source_words[ours], self.alignment.target_words[theirs]
        return self.text[slice(*mine)] == self.translation[slice(*other)]


class _Run(NamedTuple):
    """An element around words of the translation.

    Attributes:
        target: words [first, last) of the translation.
        source: words [first, last) of the text that the element contains.
        item: the element.
    """

    target: tuple[int, int]
    source: tuple[int, int]
    item: _Item


class _Level:
    """The span of an element in the translation, and the parts of it that the items inside have taken."""

    def __init__(self, element: _Item, pair: _Pair) -> None:
        self._element = element
        self._pair = pair
        self._alignment = pair.alignment
        self._low, self._high = element.target
        self._first = bisect_right(pair.alignment.target_stops, self._low)
        self._last = max(self._first, bisect_left(pair.alignment.target_starts, self._high))
        self._free = np.zeros(len(pair.alignment.target_words), np.bool_)
        self._free[self._first : self._last] = True
        self._taken: list[Span] = []  # sorted, without empty spans

    def place(self) -> None:
        """Place all items inside the element, and sort them by place."""
        rest = [item for item in self._element.inside if not self._place_exactly(item)]
        rest = self._place_around_words(rest)
        self._place_beside_words(rest)
        self._element.inside.sort(key=_TARGET)

    def _place_exactly(self, item: _Item) -> bool:
        """Place a part of a word that the translation has too, or kept content; tells whether it was found."""
        words = self._pair.words_of(item)
        found = None
        if item.after is None and item.source[0] < item.source[1]:
            run = words and self._alignment.target_run(*words, self._free)
            wanted = self._alignment.target_words[run[0]][0] if run else self._beside(item)
            found = self._pair.nearest(item.source, wanted)
        elif words is not None and words[1] - words[0] == 1 and self._first < self._last:
            found = self._pair.inside(item.source, words[0], self._clearest(words[0]))
        if found is None or not self._is_untaken(found):
            return False
        item.target = found
        insort(self._taken, found)
        first = bisect_right(self._alignment.target_stops, found[0])
        self._free[first : bisect_left(self._alignment.target_starts, found[1])] = False
        return True

    def _is_untaken(self, span: Span) -> bool:
        following = bisect_left(self._taken, span)
        low = self._taken[following - 1][1] if following else self._low
        high = self._taken[following][0] if following < len(self._taken) else self._high
        return low <= span[0] and span[1] <= high

    def _place_around_words(self, items: Sequence[_Item]) -> list[_Item]:
        """Place elements with words, the highest weight first; returns the remaining items."""
        wanted: list[tuple[float, _Run]] = []
        for item in items:
            words = self._pair.words_of(item) if item.after is not None else None
            run = words and self._alignment.target_run(*words, self._free)
            if words and run:
                share = self._alignment.weights[slice(*run), slice(*words)].sum()
                wanted.append((share, _Run(run, words, item)))
        wanted.sort(key=_SHARE, reverse=True)
        runs = []
        for _, (target, source, item) in wanted:
            run = target if self._free[slice(*target)].all() else self._alignment.target_run(*source, self._free)
            if run is not None:
                self._free[slice(*run)] = False
                runs.append(_Run(run, source, item))
        self._spread(sorted(runs, key=_TARGET))
        around = {id(run.item) for run in runs}
        return [item for item in items if id(item) not in around]

    def _spread(self, runs: Sequence[_Run]) -> None:
        """Put the ends of elements beside their words, or beside the same characters around them in both texts."""
        starts = [self._alignment.target_words[run.target[0]][0] for run in runs]
        low = self._low
        for (target, source, item), start, following in zip(runs, starts, [*starts, self._high][1:], strict=True):
            place = bisect_left(self._taken, (start, start))
            low = max(low, self._taken[place - 1][1] if place else low)
            high = min(following, self._high, self._taken[place][0] if place < len(self._taken) else following)
            begin = self._pair.before(item.source[0], source[0], target[0])
            end = self._pair.after(item.source[1], source[1] - 1, target[1] - 1)
            begin = min(max(begin, low), high)
            low = max(min(end, high), begin)
            item.target = begin, low
        self._taken = sorted([*self._taken, *[span for *_, item in runs if (span := item.target)[0] < span[1]]])

    def _place_beside_words(self, items: Sequence[_Item]) -> None:
        """Place items without words or without free words: in their order, outside all placed items."""
        least = self._low
        for item in items:
            begin = min(max(self._beside(item), least), self._high)
            following = bisect_right(self._taken, begin, key=lambda span: span[0])
            if following and begin < (span := self._taken[following - 1])[1]:  # inside a placed item
                begin = span[1] if self._follows(item) else span[0]
            least = begin
            content = self._pair.text[slice(*item.source)]
            following = bisect_left(self._taken, (begin, begin))
            high = self._taken[following][0] if following < len(self._taken) else self._high
            if item.after is not None and begin + len(content) <= high:
                least += len(content) * is_at(content, begin, self._pair.translation, self._pair.kept[1])
            item.target = begin, least

    def _beside(self, item: _Item) -> int:
        """Find the place after the word before an item, or before the word after it."""
        place, (low, high) = item.source[0], self._element.source
        ours = self._alignment.source_words
        preceding = bisect_left(self._alignment.source_starts, place) - 1
        following = bisect_right(self._alignment.source_stops, place)
        if self._first < self._last and not self._follows(item) and following < len(ours) and ours[following][0] < high:
            return self._pair.before(place, following, self._clearest(following))
        if self._first < self._last and preceding >= 0 and ours[preceding][1] > low:
            return self._pair.after(place, preceding, self._clearest(preceding))
        return self._low

    def _follows(self, item: _Item) -> bool:
        """Tell whether an item belongs to the text before it."""
        start, stop = item.source
        return item.closes or (start < stop and start > 0 and not self._pair.text[start - 1].isspace())

    def _clearest(self, ours: int) -> int:
        """Find the word in the element's span with the highest weight for a word of the text; the span has words."""
        return self._first + int(self._alignment.weights[self._first : self._last, ours].argmax())
