"""Words and pictures that a model has no pieces for: it would read them byte by byte, and write other bytes.

A name in another script, an emoji, and a number with a sign that the tokenizer makes a plain digit, as 10⁶ becomes 106.
Letters of Latin that are written in bytes are left alone up to U+017F: models have seen them often.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dragoman.scripts import UNSPACED
from dragoman.tokenizer import Tokenizer
from plugins.terms.terms import Terms
from service.rewriting import Span
from service.terms import MAYBE_UNWRITTEN

_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
# Languages whose models may have learned the bytes of such characters.
_UNSPACED_LANGUAGES: Final = frozenset(["bo", "dz", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"])
_BYTE: Final = "<0x"  # how the name of a piece begins that is a byte
_LONGEST_UNIT: Final = 3  # letters before a raised digit, as in km²; behind a longer word stands the number of a note
_KEPT: Final = 4_096  # characters


class Unwritten:
    """Finds them for one model. For any thread."""

    def __init__(self, tokenizer: Tokenizer, language: str) -> None:
        """Begin with nothing known.

        Args:
            language: that the model reads, a BCP-47 code; "" where nobody knows.
        """
        self._tokenizer = tokenizer
        self._reads_unspaced = language.partition("-")[0].lower() in _UNSPACED_LANGUAGES
        self._kind = lru_cache(_KEPT)(self._kind_of)

    def __call__(self, terms: Terms | None) -> Terms:
        """Give the terms of a request, and these beside them."""
        return (terms or Terms()).keeping(self.find)

    def find(self, text: str) -> Iterator[Span]:
        """Yield the borders [start, stop) of each, in their order; words beside one another are one."""
        begun, done = 0, 0
        for found in MAYBE_UNWRITTEN.finditer(text):
            place = found.start()
            if place < done or not (kind := self._kind(found[0])):
                continue
            start, stop = _picture(text, place) if kind == "S" else _word(text, done, place)
            if kind == "N" and place - start > _LONGEST_UNIT and not text[start:place].strip(".,").isdecimal():
                continue
            if done and text[done:start] in (" ", "\u00a0", "-", ""):
                done = stop
                continue
            if done:
                yield begun, done
            begun, done = start, stop
        if done:
            yield begun, done

    def _kind_of(self, character: str) -> str:
        """Tell what of these a character is: part of a word "L", a sign that changes a number "N", a picture "S"."""
        category = unicodedata.category(character)
        if category == "No":
            return "N" if self._tokenizer.decode(self._tokenizer.encode_target(character)).strip() != character else ""
        if category[0] not in "LM" and category != "So":
            return ""
        if self._reads_unspaced and _UNSPACED.match(character):
            return ""
        pieces = self._tokenizer.source_pieces(self._tokenizer.encode(character))
        in_bytes = any(piece.startswith(_BYTE) for piece in pieces)
        return category[0].replace("M", "L") if in_bytes else ""


def _word(text: str, begin: int, place: int) -> Span:
    """Find the word around a place of a text, not before another one; a number has points and commas inside."""
    start = stop = place
    while start > begin and (_in_word(text[start - 1]) or _in_number(text, start - 1)):
        start -= 1
    while stop < len(text) and _in_word(text[stop]):
        stop += 1
    return start, stop


def _picture(text: str, place: int) -> Span:
    """Find the end of pictures that stand together, with what changes them: colors, joiners, presentation."""
    stop = place + 1
    while stop < len(text) and unicodedata.category(text[stop]) in ("So", "Sk", "Mn", "Me", "Cf"):
        stop += 1
    return place, stop


def _in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def _in_number(text: str, place: int) -> bool:
    return text[place] in ".," and text[place - 1 : place].isdecimal()
