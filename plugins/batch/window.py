"""The limit on the pending texts of one call.

A text is pending from when it is read until the transport has taken its answer. So a caller that sends faster than the
server translates must wait, and so must a caller that does not read its answers.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Window(NamedTuple):
    """The limits on the pending texts of one call.

    Attributes:
        texts: the number of texts.
        text_bytes: the size of all of them together, in UTF-8.
    """

    texts: int
    text_bytes: int

    def fitting(self, contents: Sequence[str], held_texts: int, held_bytes: int) -> list[int]:
        """Compute which texts fit; if none is pending, at least one fits.

        Args:
            contents: the next texts.
            held_texts: the number of pending texts.
            held_bytes: the size of all pending texts, in UTF-8.

        Returns:
            The sizes in bytes of the first texts that fit.
        """
        sizes: list[int] = []
        room_bytes = self.text_bytes - held_bytes
        for text in contents[: self.texts - held_texts]:
            size = len(text.encode())
            room_bytes -= size
            if room_bytes < 0 and (sizes or held_texts):
                break
            sizes.append(size)
        return sizes
