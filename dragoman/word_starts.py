"""Pieces of a SentencePiece model that cannot continue a word."""

import unicodedata
from typing import Final

from dragoman.scripts import UNSPACED_CHARACTER

_BLANK: Final = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece writes it for a blank
# Letters, marks and digits are parts of words; an underscore is a part of words in program names.
_IN_WORDS: Final = "LMN"


def ends_word_before(piece: str) -> bool:
    """Tell whether the word before a piece ends there: the piece begins with a blank, or with no part of a word.

    Byte pieces such as "<0xC3>" may be a part of a letter, so no word ends before them; nor before control pieces such
    as "</s>", which are no text.
    """
    first = piece[:1]
    if first == _BLANK:
        return True
    if first in ("", "_") or (first == "<" and piece.endswith(">") and len(piece) > 2):
        return False
    category = unicodedata.category(first)
    # In a script without blanks each letter may begin a word, but not a sign that repeats or lengthens a letter.
    return category[0] not in _IN_WORDS or (category == "Lo" and UNSPACED_CHARACTER.match(first) is not None)
