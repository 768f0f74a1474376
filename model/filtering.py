"""Pairs whose sides cannot be translations of each other, found by counting alone."""

import re
import unicodedata
from collections import Counter
from typing import Final

from dragoman.clock import TWELVE_HOURS

MOST_LENGTH_RATIO: Final = 2.2
# Added to both lengths, since the lengths of short texts differ more.
_LENGTH_OFFSET: Final = 8
LEAST_LETTERS: Final = 0.55
# A shorter text may be a number or a sign.
_LEAST_CHARACTERS: Final = 12
# Smaller numbers may be written as words on the other side.
_LARGEST_WORD: Final = 12
_NUMBER: Final = re.compile(r"\d+")
_THOUSANDS: Final = re.compile(r"(\d+)(?:[.,](\d))?k\b", re.IGNORECASE)
_BETWEEN_THOUSANDS: Final = re.compile(r"(?<=\d)[.,'’ \u00a0\u2009\u202f](?=\d{3}(?!\d))")


def fault(source: str, target: str) -> str | None:
    """Name the fault of a pair: "length ratio", "numbers", "letters"; None if it has none."""
    shorter, longer = sorted((len(source) + _LENGTH_OFFSET, len(target) + _LENGTH_OFFSET))
    if longer > MOST_LENGTH_RATIO * shorter:
        return "length ratio"
    # 2 pm is 14 Uhr in German.
    if not _same_numbers(source, target) and not any(map(TWELVE_HOURS.search, (source, target))):
        return "numbers"
    if any(len(side) >= _LEAST_CHARACTERS and _share_of_letters(side) < LEAST_LETTERS for side in (source, target)):
        return "letters"
    return None


def _same_numbers(source: str, target: str) -> bool:
    """Compare the numbers as they are written, or else written out: 3,000 may be 3000, and 8.5k may be 8.500."""
    if _numbers(source) == _numbers(target):
        return True
    return _numbers(_written_out(source)) == _numbers(_written_out(target))


def _written_out(text: str) -> str:
    whole = _THOUSANDS.sub(lambda found: f"{found[1]}{found[2] or '0'}00", text)
    return _BETWEEN_THOUSANDS.sub("", whole)


def _numbers(text: str) -> Counter[str]:
    """Count the numbers that are not written as words, in any digits; separators differ by language."""
    numbers = ("".join(str(int(digit)) for digit in digits) for digits in _NUMBER.findall(text))
    return Counter(digits for digits in numbers if len(digits) > 2 or int(digits) > _LARGEST_WORD)


def _share_of_letters(text: str) -> float:
    """Count letters, the vowel signs and other marks that many scripts set around them, and blanks."""
    return sum(character == " " or unicodedata.category(character)[0] in "LM" for character in text) / len(text)
