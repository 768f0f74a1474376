"""One text of a call between its coming and its answer."""

from collections.abc import Iterable
from itertools import islice

from service.calls.text_worker import Text
from service.segment import Segment


class OpenText:
    """A text and what of it is unfinished.

    Attributes:
        content: its document, or the error in its place.
        size_bytes: that it takes of the window of its call.
        unfinished: its segments that have not ended: a set in the order of the text.
        read: whether it has been read to its end.
    """

    __slots__ = ("content", "read", "size_bytes", "unfinished")

    def __init__(self, content: Text, size_bytes: int) -> None:
        self.content = content
        self.size_bytes = size_bytes
        self.unfinished: dict[Segment, None] = {}
        self.read = False

    @property
    def finished(self) -> bool:
        """Whether it has been read to its end, and all its segments have ended."""
        return self.read and not self.unfinished


def pop_unfinished(texts: Iterable[OpenText], count: int) -> list[Segment]:
    """Remove segments from those that are unfinished, at most `count` in all."""
    first = list(islice(((text, segment) for text in texts for segment in text.unfinished), count))
    for text, segment in first:
        del text.unfinished[segment]
    return [segment for _, segment in first]
