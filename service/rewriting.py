"""A text before and after some edits, and the positions in one text that belong to positions in the other."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

Span: TypeAlias = tuple[int, int]  # characters [start, stop) of a text


class Edit(NamedTuple):
    """A place of a text, and the new text for it."""

    start: int
    stop: int
    new: str


class Rewriting:
    """Two texts, before and after some edits.

    Attributes:
        original: the text before the edits.
        text: the text after the edits.
        kept: the spans of the text after the edits that stay as they are in any text; each counts as one word.
    """

    def __init__(self, text: str, edits: Iterable[Edit] = ()) -> None:
        """Edit a text.

        Args:
            text: the text before the edits.
            edits: in order, without overlap, each of at least one character, which may become none; for an empty text,
                one edit of no character.
        """
        self.original = text
        self.kept: Sequence[Span] = ()
        self._before: list[Span] = []
        self._after: list[Span] = []
        pieces: list[str] = []
        done = length = 0
        for start, stop, new in edits:
            pieces += (text[done:start], new)
            length += start - done
            self._before.append((start, stop))
            self._after.append((length, length + len(new)))
            done, length = stop, length + len(new)
        self.text = "".join([*pieces, text[done:]])

    def after(self, span: Span) -> Span:
        """Find the place in the new text of a place in the old one; an edited place counts as a whole."""
        return _moved(span, self._before, self._after)

    def before(self, span: Span) -> Span:
        """Find the place in the old text of a place in the new one, likewise."""
        return _moved(span, self._after, self._before)


def _moved(span: Span, ours: Sequence[Span], theirs: Sequence[Span]) -> Span:
    start, stop = span
    first = bisect_right(ours, start, key=lambda edit: edit[1])  # the first edit that ends after the start
    last = bisect_left(ours, stop, key=lambda edit: edit[0]) - 1  # the last edit that begins before the stop
    if first < len(ours) and ours[first][0] <= start < stop:
        moved_start = theirs[first][0]
    else:
        moved_start = start + (theirs[first - 1][1] - ours[first - 1][1] if first else 0)
    if last >= 0 and start < stop <= ours[last][1]:
        return moved_start, theirs[last][1]
    if start == stop:
        return moved_start, moved_start
    return moved_start, stop + (theirs[last][1] - ours[last][1] if last >= 0 else 0)
