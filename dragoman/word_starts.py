"""Which pieces of a SentencePiece model no word goes on with."""

import unicodedata
from typing import Final

_BLANK: Final = "\N{LOWER ONE EIGHTH BLOCK}"  # which SentencePiece writes for one
# Letters, marks and digits are parts of words; an underscore is one in names of programs.
_IN_WORDS: Final = "LMN"
# Scripts without blanks between words: each character may be the first of one.
_WITHOUT_BLANKS: Final = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


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
    is_in_word = category[0] in _IN_WORDS
    return not is_in_word or (category[0] == "L" and unicodedata.name(first, "").startswith(_WITHOUT_BLANKS))
