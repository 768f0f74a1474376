"""A piece of a text that was split, and the tags that were taken out of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from service.text.alignment import Alignment


class Tags(Protocol):
    """The tags of a piece, and all else in it that is no text."""

    @property
    def marks(self) -> Sequence[object]:
        """All of them, by place."""

    @property
    def contents(self) -> Sequence[tuple[int, int]]:
        """Characters [start, stop) of the text that marks hold, too."""

    def restore(self, translation: str, alignment: Alignment | None) -> str:
        """Write a translation with the marks in it.

        Args:
            alignment: of both; None: nobody knows which word became which.
        """


class Piece(NamedTuple):
    """A part of a text: all pieces of a text, `kept` and `text` in turn, are the text itself.

    Attributes:
        kept: what stays as it is.
        text: what is to be translated behind it; "" for nothing.
        inside: whether it is part of a sentence that was too long, and was split inside.
        tags: that were taken out of `text`; None: it is no markup.
    """

    kept: str
    text: str = ""
    inside: bool = False
    tags: Tags | None = None
