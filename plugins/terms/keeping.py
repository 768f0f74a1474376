"""What stays as it is though nobody asks for it: addresses, and words and pictures that a model has no pieces for.

A model would read the latter byte by byte, and write other bytes: a name in another script, an emoji, and a number with
a sign that the tokenizer makes a plain digit, as 10⁶ becomes 106. Letters of Latin that are written in bytes are left
alone up to U+017F: models have seen them often.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from dragoman.scripts import UNSPACED_CHARACTER
from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import in_word
from plugins.terms.placeholders import find_addresses
from plugins.terms.terms import Terms
from service.rewriting import Span
from service.terms import MAYBE_UNWRITTEN

# Languages whose models may have learned the bytes of such characters.
_UNSPACED_LANGUAGES: Final = frozenset(["bo", "dz", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"])
_BYTE: Final = "<0x"  # how the name of a piece begins that is a byte
_SIGNS: Final = "⁺⁻₊₋"  # of raised and lowered numbers
# What a raised digit changes: a number, a unit, a variable. Behind another word stands the number of a note.
_RAISED: Final = re.compile(r"[\d.,]*|(?:[cdkm]?m|in|ft|yd|mi|mc|[^\W\d_])")
_LOWERED: Final = re.compile(r"[^\W_]{1,3}")  # H₂O, CO₂
_IS_LOWERED: Final = re.compile(r"[\u2080-\u208e]")
_KEPT: Final = 4_096  # kinds of characters
_LARGE: Final = 4_096  # characters of a text that is looked at sentence by sentence only

# A word with letters; a number or unit with signs, or an address; a picture; "": none of them.
_Kind: TypeAlias = Literal["L", "N", "S", ""]


class Keeper:
    """Finds them for one model. For any thread."""

    def __init__(self, tokenizer: Tokenizer, language: str) -> None:
        """Begin with nothing known.

        Args:
            language: that the model reads, a BCP-47 code; "" where nobody knows.
        """
        self._tokenizer = tokenizer
        self._reads_unspaced = language.partition("-")[0].lower() in _UNSPACED_LANGUAGES
        self._kind = lru_cache(_KEPT)(self._kind_of)

    def __call__(self, terms: Terms | None, text: str) -> Terms | None:
        """Give the terms of a request, and these where none of those stand, if a text may have any."""
        may_have = len(text) > _LARGE or any(map(self._kind, set(text))) or any(find_addresses(text))
        return (terms or Terms()).keeping(self.find) if may_have else terms

    def find(self, text: str) -> Iterator[Span]:
        """Yield the borders [start, stop) of each, in their order; words side by side are one, and so are pictures."""
        begun, done, last = 0, 0, ""
        for start, stop, kind in self._each(text):
            if last == kind != "N" and text[done:start] in ("", " ", "\u00a0", "-"):
                done = stop
                continue
            if last:
                yield begun, done
            begun, done, last = start, stop, kind
        if last:
            yield begun, done

    def _each(self, text: str) -> Iterator[tuple[int, int, _Kind]]:
        begin = 0
        for start, stop in find_addresses(text):
            yield from self._words(text, begin, start)
            yield start, stop, "N"
            begin = stop
        yield from self._words(text, begin, len(text))

    def _words(self, text: str, seen: int, end: int) -> Iterator[tuple[int, int, _Kind]]:
        """Yield what the model has no pieces for between two places; nothing is looked at twice."""
        for found in MAYBE_UNWRITTEN.finditer(text, seen, end):
            place = found.start()
            if place < seen or not (kind := self._kind(found[0])):
                continue
            start, seen = _picture(text, place, end) if kind == "S" else _word(text, seen, place, end)
            if kind != "N" or _is_changed(text[start:place], found[0]):
                yield start, seen, kind

    def _kind_of(self, character: str) -> _Kind:
        if not MAYBE_UNWRITTEN.match(character):
            return ""
        category = unicodedata.category(character)
        if category == "No" or character in _SIGNS:
            is_written = self._tokenizer.decode(self._tokenizer.encode_target(character)).strip() == character
            return "" if is_written else "N"
        # A mark is read with its letter, of which the tokenizer may make one character.
        if category not in ("Lu", "Ll", "Lt", "Lo", "So") or (
            self._reads_unspaced and UNSPACED_CHARACTER.match(character)
        ):
            return ""
        pieces = self._tokenizer.source_pieces(self._tokenizer.encode(character))
        if not any(piece.startswith(_BYTE) for piece in pieces):
            return ""
        return "S" if category == "So" else "L"


def _word(text: str, begin: int, place: int, end: int) -> Span:
    """Find the word around a place of a text; a number has points and commas inside."""
    start = stop = place
    while start > begin and (_goes_on(text[start - 1]) or _in_number(text, start - 1)):
        start -= 1
    while stop < end and _goes_on(text[stop]):
        stop += 1
    return start, stop


def _picture(text: str, place: int, end: int) -> Span:
    """Find the end of pictures that stand together, with what changes them: colors, joiners, presentation."""
    stop = place + 1
    while stop < end and unicodedata.category(text[stop]) in ("So", "Sk", "Mn", "Me", "Cf"):
        stop += 1
    return place, stop


def _is_changed(before: str, sign: str) -> bool:
    """Tell whether a raised or lowered sign belongs to what stands before it."""
    return bool(_RAISED.fullmatch(before) or (_IS_LOWERED.match(sign) and _LOWERED.fullmatch(before)))


def _goes_on(character: str) -> bool:
    return in_word(character) or character in _SIGNS


def _in_number(text: str, place: int) -> bool:
    return text[place] in ".," and text[place - 1 : place].isdecimal()
