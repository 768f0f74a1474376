"""What the steps of a text hand on. There: split, protect, encode; and back: decode, restore, join."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from service.text.alignment import Alignment


class Protection(Protocol):
    """What was taken out of a piece, so that the model does not see it."""

    @property
    def weight(self) -> int:
        """How much that is: what it takes time to put back; 0: nothing, and no alignment is needed."""

    @property
    def contents(self) -> Sequence[tuple[int, int]]:
        """Characters [start, stop) of the piece that stay as they are, though the model sees them."""

    def restore(self, translation: str, alignment: Alignment | None) -> str:
        """Put it back.

        Args:
            translation: of the piece.
            alignment: of both; None: nobody knows which word became which.
        """


class Piece(NamedTuple):
    """A part of a text: all pieces of a text, `kept` and `text` in turn, are the text itself.

    Attributes:
        kept: what stays as it is.
        text: what is to be translated behind it; "" for nothing.
        inside: whether it is part of a sentence that was too long, and was split inside.
        protection: what was taken out of `text`; None: nothing.
    """

    kept: str
    text: str = ""
    inside: bool = False
    protection: Protection | None = None
