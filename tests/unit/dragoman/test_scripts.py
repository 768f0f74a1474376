"""The scripts without blanks between words, by the names of their letters."""

import re
import unicodedata

from dragoman.scripts import UNSPACED

NAMES = ("CJK UNIFIED", "CJK COMPAT", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI", "LAO", "KHMER LETTER", "MYANMAR")
SPACED = ("LATIN", "GREEK", "CYRILLIC", "HEBREW", "ARABIC", "DEVANAGARI", "HANGUL", "GEORGIAN", "ETHIOPIC")


def test_they_are_all_letters_of_these_scripts_and_none_of_others() -> None:
    is_unspaced = re.compile(f"[{UNSPACED}]").match
    letters = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Lo"]
    for letter in letters:
        name = unicodedata.name(letter, "")
        if name.startswith(NAMES):
            assert is_unspaced(letter), name
        if name.startswith(SPACED):
            assert not is_unspaced(letter), name
