"""Lone surrogates (halves of characters), which str and JSON can hold, but UTF-8 cannot."""

from typing import Final

HALF: Final = "half a surrogate pair is no character"


def is_whole(text: str) -> bool:
    """Tell whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
