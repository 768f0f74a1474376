"""Halves of characters, which str and JSON know, and UTF-8 does not."""

from typing import Final

HALF: Final = "half a surrogate pair is no character"


def is_whole(text: str) -> bool:
    """Tell whether a text has no halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
