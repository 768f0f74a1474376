"""Which pieces of a SentencePiece model no word goes on with."""

import unicodedata
from typing import Final

from dragoman.scripts import UNSPACED_CHARACTER

_BLANK: Final = "\N{LOWER ONE EIGHTH BLOCK}"  # which SentencePiece writes for one
# Letters, marks and digits are parts of words; an underscore is one in names of programs.
_IN_WORDS: Final = "LMN"


def ends_word_before(piece: str) -> bool:
    """Tell whether a word that stands before a piece ends there: it begins with a blank, or with no part of a word.

    Pieces that stand for a byte, such as "<0xC3>", may be a part of a letter, so they end none; nor do marks such as
    "</s>", which are no text.
    """
    first = piece[:1]
    if first == _BLANK:
        return True
    if first in ("", "_") or (first == "<" and piece.endswith(">") and len(piece) > 2):
        return False
    category = unicodedata.category(first)
    # Of a script without blanks each letter may be the first of a word, but not a sign that repeats or lengthens one.
    return category[0] not in _IN_WORDS or (category == "Lo" and UNSPACED_CHARACTER.match(first) is not None)
