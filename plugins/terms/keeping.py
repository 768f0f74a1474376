"""Parts that stay without a request: addresses, names in programs, and what a model has no pieces for.

A model would read words and signs without pieces byte by byte, and write other bytes: a name in another script, an
emoji, a number with a sign that the tokenizer turns into a plain digit, as 10⁶ into 106. Latin letters up to U+017F
that are written in bytes are not kept, but for the rarest in English and German: models have often seen them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from dragoman.scripts import UNSPACED_CHARACTER
from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import in_word
from plugins.terms.placeholders import GROUPED, find_literals
from plugins.terms.terms import Terms
from service.rewriting import Span
from service.terms import MAYBE_UNWRITTEN

# Languages whose models may have learned such characters from bytes.
_UNSPACED_LANGUAGES: Final = frozenset(["bo", "dz", "ja", "km", "lo", "my", "th", "wuu", "yue", "zh"])
# Languages in which only names have such letters.
_WESTERN_LANGUAGES: Final = frozenset(["de", "en"])
_LATIN: Final = re.compile(r"[\xc0-\u017f]")
# Between the groups of digits, by the source and the target language; the target has it as its decimal point.
_SEPARATORS: Final = {("de", "en"): ".", ("en", "de"): ","}
_SIGNS_OF_NUMBERS: Final = str.maketrans(".,", ",.")
_BYTE: Final = "<0x"  # begins the name of a byte piece
_SIGNS: Final = "⁺⁻₊₋"  # of superscript and subscript numbers
# Text that a superscript digit belongs to: a number, a unit, a variable. After another word it is a footnote mark.
_RAISED: Final = re.compile(r"[\d.,]*|(?:[cdkm]?m|in|ft|yd|mi|mc|[^\W\d_])")
_LOWERED: Final = re.compile(r"[^\W_]{1,3}")  # H₂O, CO₂
_MARK: Final = re.compile(r"[❶-➓]")  # numbers that are signs
_TRADEMARKS: Final = "®™"  # they belong to the word before them
_IS_LOWERED: Final = re.compile(r"[\u2080-\u208e]")
_KEPT: Final = 4_096  # number of cached characters

# A word with letters; a number or unit with signs, or a literal; a picture; "": none of these.
_Kind: TypeAlias = Literal["L", "N", "S", ""]


class Keeper:
    """Finds these parts for one model. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, language: str, target: str = "") -> None:
        """Begin with an empty cache.

        Args:
            language: the language that the model reads, a BCP-47 code; "" if unknown.
            target: the language that it writes, likewise.
        """
        self._tokenizer = tokenizer
        primary = language.partition("-")[0].lower()
        self._separator = _SEPARATORS.get((primary, target.partition("-")[0].lower()), "")
        self._reads_unspaced, self._reads_latin = primary in _UNSPACED_LANGUAGES, primary not in _WESTERN_LANGUAGES
        self._kind = lru_cache(_KEPT)(self._kind_of)

    def __call__(self, terms: Terms | None) -> Terms:
        """Add these parts to the terms of a request, wherever no term is."""
        return (terms or Terms()).keeping(self.find, self._written)

    def _written(self, part: str) -> str:
        """Write a number with the signs of the target language, and any other part as it is."""
        is_number = self._separator and re.fullmatch(GROUPED[self._separator], part)
        return part.translate(_SIGNS_OF_NUMBERS) if is_number else part

    def find(self, text: str) -> Iterator[Span]:
        """Yield the spans [start, stop), in order; adjacent words are joined, and so are adjacent pictures."""
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
        for start, stop in find_literals(text, self._separator):
            yield from self._words(text, begin, start)
            yield start, stop, "N"
            begin = stop
        yield from self._words(text, begin, len(text))

    def _words(self, text: str, seen: int, end: int) -> Iterator[tuple[int, int, _Kind]]:
        """Yield the parts without pieces between two places; no character is examined twice."""
        for found in MAYBE_UNWRITTEN.finditer(text, seen, end):
            place = found.start()
            if place < seen or not (kind := self._kind(found[0])):
                continue
            start, seen = _picture(text, place, end) if kind == "S" else _word(text, seen, place, end)
            if kind != "N" or _is_changed(text[start:place], found[0]):
                yield start, seen, kind

    def _kind_of(self, character: str) -> _Kind:
        if not MAYBE_UNWRITTEN.match(character) or (self._reads_latin and _LATIN.match(character)):
            return ""
        category, is_mark = unicodedata.category(character), _MARK.match(character) is not None
        if (category == "No" and not is_mark) or character in _SIGNS:
            return "" if self._tokenizer.is_written(character) else "N"
        # A mark is judged with its letter, since the tokenizer may join both into one character.
        is_sign = is_mark or category[0] in "SP" or category == "Co"  # Co: of a font with pictures
        if not (is_sign or category in ("Lu", "Ll", "Lt", "Lo", "Nd")) or (
            self._reads_unspaced and UNSPACED_CHARACTER.match(character)
        ):
            return ""
        pieces = self._tokenizer.source_pieces(self._tokenizer.encode(character))
        has_bytes = any(piece.startswith(_BYTE) for piece in pieces)
        if character in _TRADEMARKS:
            return "L" if has_bytes or not self._tokenizer.is_written(character) else ""
        if not has_bytes and (pieces or not is_sign):
            return ""
        return "S" if is_sign else "L"


def _word(text: str, begin: int, place: int, end: int) -> Span:
    """Find the word around a place of a text; a number may contain points and commas."""
    start, stop = place, place + 1
    while start > begin and (_goes_on(text[start - 1]) or _in_number(text, start - 1)):
        start -= 1
    while stop < end and _goes_on(text[stop]):
        stop += 1
    return start, stop


def _picture(text: str, place: int, end: int) -> Span:
    """Find the end of adjacent pictures with their modifiers: colors, joiners, presentation."""
    stop = place + 1
    while stop < end and unicodedata.category(text[stop]) in ("So", "Sk", "Mn", "Me", "Cf"):
        stop += 1
    return place, stop


def _is_changed(before: str, sign: str) -> bool:
    """Tell whether a superscript or subscript sign belongs to the text before it."""
    return bool(_RAISED.fullmatch(before) or (_IS_LOWERED.match(sign) and _LOWERED.fullmatch(before)))


def _goes_on(character: str) -> bool:
    return in_word(character) or character in _SIGNS


def _in_number(text: str, place: int) -> bool:
    return text[place] in ".," and text[place - 1 : place].isdecimal()
