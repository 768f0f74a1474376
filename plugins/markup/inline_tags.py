"""A sentence with its tags taken out, and its translation with the tags put back in."""

import re
from collections.abc import Collection, Sequence
from html import escape
from typing import Final, NamedTuple

from dragoman.scripts import UNSPACED_CHARACTER
from plugins.alignment.alignment import joined
from plugins.markup import tag_guess, tag_layout
from plugins.markup.mark import InlineTag, is_read, overlap, partners
from service.rewriting import Span
from service.text.alignment import Alignment

# The largest number of marks in a sentence that are placed by word alignment: more take too long.
_MOST_MARKS: Final = 2_000


class TaggedText(NamedTuple):
    """A text to translate, and its marks.

    Attributes:
        text: the text, without references and tags.
        marks: the marks, by place.
        hard_blank: the source of a non-breaking blank.
    """

    text: str
    marks: Sequence[InlineTag] = ()
    hard_blank: str = "&nbsp;"

    @property
    def contents(self) -> Sequence[tuple[int, int]]:
        """The spans [start, stop) of the text that are content of marks, and that no model is to read."""
        spans = [(mark.place, mark.place + mark.width) for mark in self.marks if mark.width]
        return [span for span in spans if is_read(self.text, *span)]

    def restore(self, translation: str, alignment: Alignment | None, kept: Sequence[Span] = ()) -> str:
        """Write a translation as HTML or XML, with its marks.

        Args:
            alignment: the word alignment of both texts; None: unknown.
            kept: the spans of the translation that stayed as they were: each counts as one word.
        """
        # Overlapping elements cannot move independently: their tags must keep their order.
        marks = self.marks
        has_order = translation == self.text or len(marks) > _MOST_MARKS or overlap(marks, partners(marks))
        whole = (self._found({translation[slice(*span)] for span in kept}), joined((), kept)) if kept else ((), ())
        if alignment is None or has_order:
            placed = tag_guess.placed(self.text, self.marks, translation, whole)
        else:
            placed = tag_layout.placed(self.text, self.marks, translation, alignment, whole)
        pieces: list[str] = []
        done, parted = 0, -1  # the place of the last blank behind an added mark
        for start, stop, source, is_added in placed:
            pieces += (self._escaped(translation[done:start]), source)
            done = stop
            if is_added and start != parted and _is_in_word(translation[max(start - 1, 0) : start]):
                pieces.insert(-1, " ")
            if is_added and _is_in_word(translation[start : start + 1]):
                pieces.append(" ")
                parted = start
        return "".join([*pieces, self._escaped(translation[done:])])

    def _found(self, parts: Collection[str]) -> Sequence[Span]:
        """List the spans of some parts in the text, the longest at each place."""
        pattern = "|".join(map(re.escape, sorted(parts, key=len, reverse=True)))
        return [found.span() for found in re.finditer(pattern, self.text)]

    def _escaped(self, text: str) -> str:
        return escape(text, quote=False).replace("\xa0", self.hard_blank)


def _is_in_word(character: str) -> bool:
    return character.isalnum() and not UNSPACED_CHARACTER.match(character)
