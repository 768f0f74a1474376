"""Marks in a sentence that are not text, such as tags, and the pairs among them."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class InlineTag(NamedTuple):
    """Something in a text that is not text: a tag, a comment, an element that is kept.

    Attributes:
        place: in front of which character it stands.
        source: how it is written.
        closes: whether it belongs to what stands before it.
        width: how many characters of the text are its content, which `source` has too.
        name: of the element that it begins or ends; "": it does neither, or the other end is not in the text.
    """

    place: int
    source: str
    closes: bool = False
    width: int = 0
    name: str = ""


class Placed(NamedTuple):
    """The place of a mark in a translation.

    Attributes:
        start: of the characters of the translation that it takes the place of ...
        stop: ... and their end.
        source: how it is written.
    """

    start: int
    stop: int
    source: str


def partners(marks: Sequence[InlineTag]) -> list[int | None]:
    """Find the other end of each element: the index of its mark; None for a mark that has none.

    Elements whose ends are found are nested, or apart. An end belongs to the last begin of its name that has none yet;
    begins behind that have no end then, as browsers see it.
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
    """Tell whether an element lacks its other end inside another one, as in <b>one <i>two</b> three</i>.

    Args:
        ends: as `partners` gives them.
    """
    depth = 0
    for index, (mark, end) in enumerate(zip(marks, ends, strict=True)):
        if end is not None:
            depth += 1 if end > index else -1
        elif mark.name and depth:
            return True
    return False
