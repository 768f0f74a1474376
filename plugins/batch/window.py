"""How many texts of one call may be on their way.

A text is on its way from when it was read until its answer was taken by the transport. So a caller that sends faster
than texts are translated has to wait, and one that does not read its answers too.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Window(NamedTuple):
    """The texts of one call that may be on their way.

    Attributes:
        texts: how many.
        text_bytes: of all of them, in UTF-8.
    """

    texts: int
    text_bytes: int

    def fitting(self, contents: Sequence[str], held_texts: int, held_bytes: int) -> list[int]:
        """Tell which texts there is room for; one always fits where none is on its way.

        Args:
            contents: texts that are to come.
            held_texts: how many are on their way.
            held_bytes: of all of these, in UTF-8.

        Returns:
            The bytes of each of the first texts, as many as fit.
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
