"""A piece of a text that was split."""

from typing import NamedTuple

from service.text.inline_tags import TaggedText


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
    tags: TaggedText | None = None
