"""A piece of a text that was split, and the tags that were taken out of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from service.rewriting import Span
from service.text.alignment import Alignment


class Tags(Protocol):
    """The tags of a piece, and all else in it that is no text."""

    @property
    def marks(self) -> Sequence[object]:
        """All tags and other marks, by place."""

    @property
    def contents(self) -> Sequence[tuple[int, int]]:
        """Characters [start, stop) of the text that are also in the marks."""

    def restore(self, translation: str, alignment: Alignment | None, kept: Sequence[Span] = ()) -> str:
        """Write a translation with the marks in it.

        Args:
            alignment: alignment of the text and its translation; None: it is not known.
            kept: spans of the translation in which no tag is to be put.
        """


class Piece(NamedTuple):
    """A part of a text: `kept` and `text` of all pieces, in their order, are the whole text.

    Attributes:
        kept: text that stays as it is.
        text: text after it that is to be translated; "" for none.
        inside: whether it is part of a sentence that was too long, and was split inside.
        tags: tags that were taken out of `text`; None: the text is no markup.
    """

    kept: str
    text: str = ""
    inside: bool = False
    tags: Tags | None = None
