"""Marks in a sentence that are not text, such as tags, and pairs of marks."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from dragoman.scripts import UNSPACED_CHARACTER
from service.rewriting import Span

_MARK: Final = re.compile(r"(?<!\S)[.,;:?!\"'-]{1,3}")  # a word of its own: not that in Name<span>:</span>
# The spans of kept parts in a text and in its translation, each in order.
Kept: TypeAlias = tuple[Sequence[Span], Sequence[Span]]


class InlineTag(NamedTuple):
    """A part of the source that is not text: a tag, a comment, a kept element.

    Attributes:
        place: the index of the character after the mark.
        source: the source of the mark.
        closes: whether the mark belongs to the text before it.
        width: how many characters of the text are its content, which `source` contains too.
        name: the name of the element that it begins or ends; "": neither, or the other end is not in the text.
    """

    place: int
    source: str
    closes: bool = False
    width: int = 0
    name: str = ""


class Placed(NamedTuple):
    """The place of a mark in a translation.

    Attributes:
        start: the start of the characters of the translation that the mark replaces ...
        stop: ... and their end.
        source: the source of the mark.
        is_added: whether the mark has content that the translation lacks: it touches no word.
    """

    start: int
    stop: int
    source: str
    is_added: bool = False


def is_read(text: str, start: int, stop: int) -> bool:
    """Tell whether a model reads a name in place of a kept content: of words, or of a mark like those of sentences."""
    return any(map(str.isalnum, text[start:stop])) or _MARK.fullmatch(text, start, stop) is not None


def cuts(start: int, stop: int, kept: Sequence[Span]) -> bool:
    """Tell whether a span begins or ends inside one of some ascending spans."""
    first = bisect_right(kept, start, key=itemgetter(1))
    last = bisect_left(kept, stop, key=itemgetter(0)) - 1
    return first <= last and (kept[first][0] < start or stop < kept[last][1])


def is_at(content: str, place: int, text: str, kept: Sequence[Span]) -> bool:
    """Tell whether a content is at a place of a text, and cuts no kept part."""
    return place >= 0 and text.startswith(content, place) and not (kept and cuts(place, place + len(content), kept))


def cuts_word(start: int, stop: int, text: str) -> bool:
    """Tell whether a span begins or ends inside a word; in scripts without blanks between words, none does."""
    sides = [text[place - 1 : place + 1] for place in (start, stop) if place]
    return any(len(side) == 2 and side.isalnum() and not UNSPACED_CHARACTER.search(side) for side in sides)


def places_of(content: str, text: str, kept: Sequence[Span], *, in_words: bool) -> list[int]:
    """List all places where a content occurs in a text and cuts no kept part, overlapping ones included.

    Args:
        in_words: whether it may be a part of a word, as it is in the other text.
    """
    places = [(found.start(), found.start() + len(content)) for found in re.finditer(f"(?={re.escape(content)})", text)]
    return [place[0] for place in places if not cuts(*place, kept) and (in_words or not cuts_word(*place, text))]


def partners(marks: Sequence[InlineTag]) -> list[int | None]:
    """Find the other end of each element: the index of its mark; None for a mark without one.

    The paired elements are nested or separate. An end belongs to the last unpaired begin of its name; unpaired begins
    after that one stay without an end, as in browsers.
    """
    found: list[int | None] = [None] * len(marks)
    begun: list[int] = []
    names: Counter[str] = Counter()
    for index, mark in enumerate(marks):
        if not mark.name:
            continue
        if not mark.closes:
            begun.append(index)
            names[mark.name] += 1
        elif names[mark.name]:
            while marks[begin := begun.pop()].name != mark.name:
                names[marks[begin].name] -= 1
            names[mark.name] -= 1
            found[begin], found[index] = index, begin
    return found


def overlap(marks: Sequence[InlineTag], ends: Sequence[int | None]) -> bool:
    """Tell whether an element has only one end inside another one, as in <b>one <i>two</b> three</i>.

    Args:
        ends: the result of `partners`.
    """
    depth = 0
    for index, (mark, end) in enumerate(zip(marks, ends, strict=True)):
        if end is not None:
            depth += 1 if end > index else -1
        elif mark.name and depth:
            return True
    return False
