"""Counts of differences between a translation and its source that are signs of a bad translation.

Numbers, codes, names and placeholders of the source are searched in the translation. There is no dictionary, so
differences of good translations are ignored where possible: separators of numbers, endings of names, small numbers
written as words, and names in languages that capitalise nouns or use another script.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from typing import Final, NamedTuple

from dragoman.clock import NOON, TWELVE_HOURS, in_24_hours
from dragoman.scripts import UNSPACED, UNSPACED_CHARACTER
from plugins.terms import placeholders
from service.text.text_quality import without

# Beginnings of the words for 0 to 12, cardinal and ordinal: a translation may have such a word in place of digits.
_SMALL_NUMBERS: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    language: [tuple(forms.split("|")) for forms in row.split()]
    for language, row in {
        "de": "null|mitternacht ein|erst zwei|zwo drei|dritt vier fünf sechs sieb acht neun zehn elf zwölf|mittag",
        "en": "zero|midnight one|first two|second three|third four five|fifth six seven eight nin ten eleven twel|noon",
        "es": "cero un|prim dos|segund tres|tercer cuatr|cuart cinco|quint seis|sext siete|séptim ocho|octav "
        "nuev|nov diez|décim once doce",
        "fr": "zéro un|prem deux trois quatr cinq six sept huit neuf|neuv dix onz douz",
        "it": "zero un|prim due|second tre|terz quattr|quart cinqu|quint sei|sest sett ott nov diec|decim undic dodic",
        "nl": "nul een|één|eerst twee|tweed drie|derd vier vijf zes zeven acht negen tien elf twaalf",
        "pt": "zero um|prim dois|duas|segund três|terceir quatr|quart cinco|quint seis|sext sete|sétim oito|oitav nov "
        "dez|décim onze doze",
    }.items()
}
_MOST_SMALL: Final = 12
_CAPITALISED_NOUNS: Final = ("de", "lb")  # in these languages a capital letter does not mark a name

# Words that mean p.m. in a translation that keeps the hour of the source: "6 Uhr abends".
_HALVES_OF_DAY: Final = {
    "de": re.compile("abend|mittag|nacht|nächt", re.IGNORECASE),
    "en": re.compile("evening|noon|night", re.IGNORECASE),
}

# Groups of three digits separated by blanks; or digits with other separators.
_NUMBER: Final = re.compile(r"(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,'’]\d+)*")
# Times, not fractions: 18.45 Uhr and 9.30 bis 18.45 Uhr.
_GERMAN_TIME: Final = re.compile(r"\b(\d{1,2})\.([0-5]\d)(?=(?: (?:bis|und) [\d.:]{1,5})? Uhr\b)")
_SEPARATOR: Final = re.compile(r"\D")
# Letters and digits in one word, such as x86_64 or v2.1 ...
_CODE: Final = re.compile(r"\b(?=\w*\d)(?=\w*[^\W\d_])\w+(?:[.-]\w+)*")
# ... except ordinals, decades and measures, which each language writes in its own way.
_MEASURE: Final = re.compile(r"\d+(?:st|nd|rd|th|s|[^\W\d_]{1,2})")
_WORD: Final = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f]")
_BEGINS_SENTENCE: Final = re.compile(r"[.!?…:;\"“”„»«(\n]")  # between two words
_TIME_DIGITS: Final = 2  # of an hour, a day or a month, which may have a leading zero
_STEM: Final = 4  # letters that identify a name: Australia, Australien
_UNSPACED_WIDTH: Final = 3  # letters equal to one character of a script without blanks
_LENGTH_ROOM: Final = 4  # letters by which the lengths of short texts may differ
_LONGEST_REPEAT: Final = 4  # words of a repeated phrase
_MOST: Final = 3  # higher counts have no further effect


class Counted(NamedTuple):
    """Counts of a translation and its source; 0 is good; numbers of items are limited to 3.

    Attributes:
        numbers_lost: numbers that the translation has less often than the source.
        numbers_added: numbers that the translation has more often than the source.
        codes_lost: words of letters and digits that the translation has less often than the source.
        names_lost: capitalised words inside a sentence of the source that the translation lacks.
        placeholders_lost: placeholders, web and e-mail addresses, and emoji that the translation has less often.
        repeats: words, or phrases of up to four, that are directly repeated, more often than in the source.
        too_short: the natural logarithm of the source's length divided by the translation's, if positive.
        too_long: the negation of that logarithm, if positive.
        unfinished: 1 if the translation was cut off at a limit, or stopped because it repeated itself.
        unknown_pieces: pieces of the source that the model could not read.
    """

    numbers_lost: float
    numbers_added: float
    codes_lost: float
    names_lost: float
    placeholders_lost: float
    repeats: float
    too_short: float
    too_long: float
    unfinished: float
    unknown_pieces: float

    @property
    def lost(self) -> tuple[float, ...]:
        """The parts of the source that the translation lacks, by kind."""
        return self.numbers_lost, self.codes_lost, self.names_lost, self.placeholders_lost


def count(
    source: str,
    translation: str,
    source_language: str = "",
    target_language: str = "",
    *,
    unfinished: bool = False,
    unknown_pieces: int = 0,
) -> Counted:
    """Count what a translation lacks, and what it has in addition.

    Args:
        source: usually a sentence.
        source_language: the code of the source language; "": unknown.
        target_language: the code of the target language; "": unknown.
        unfinished: whether the translation was cut off at a limit, or stopped because it repeated itself.
        unknown_pieces: pieces of the source that the model could not read.
    """
    kept, plain = _apart(source)
    _, plain_translation = _apart(translation)
    plain, plain_translation = (
        _with_24_hours(plain, plain_translation, target_language),
        _with_24_hours(plain_translation, plain, source_language),
    )
    folded = plain_translation.casefold()
    codes = Counter(_codes(plain))
    numbers, translated = _numbers(_CODE.sub(_measure, plain)), _numbers(plain_translation)
    lost = numbers - translated - _written(numbers, folded, target_language)
    added = translated - _numbers(plain) - _written(translated, plain.casefold(), source_language)
    if TWELVE_HOURS.search(source):
        _share_halves(lost, added)
    if TWELVE_HOURS.search(translation):
        _share_halves(added, lost)
    length = log((_width(translation) + _LENGTH_ROOM) / (_width(source) + _LENGTH_ROOM))
    return Counted(
        numbers_lost=min(_MOST, lost.total()),
        numbers_added=min(_MOST, added.total()),
        codes_lost=min(_MOST, sum(max(0, times - folded.count(code)) for code, times in codes.items())),
        names_lost=min(_MOST, _names_lost(plain, plain_translation, source_language)),
        placeholders_lost=min(_MOST, sum(max(0, n - translation.count(each)) for each, n in Counter(kept).items())),
        repeats=min(_MOST, max(0, _repeats(translation) - _repeats(source))),
        too_short=max(0.0, -length),
        too_long=max(0.0, length),
        unfinished=float(unfinished),
        unknown_pieces=min(_MOST, unknown_pieces),
    )


def _apart(text: str) -> tuple[list[str], str]:
    """Give the placeholders of a text, and the text without them."""
    spans = list(placeholders.find(text))
    return [text[start:stop] for start, stop in spans], without(text, spans, " ")


def _with_24_hours(text: str, other: str, language: str) -> str:
    """Write 6 p.m. as 18, unless the other text, in this language, may have it as 6."""
    if not TWELVE_HOURS.search(text):
        return text
    others = _numbers(TWELVE_HOURS.sub(lambda time: f"{in_24_hours(time)};", other))
    halves = _HALVES_OF_DAY.get(language.partition("-")[0].lower())
    is_other_known = halves is not None and not halves.search(other)

    def written(time: re.Match[str]) -> str:
        clock = in_24_hours(time)
        is_known = is_other_known or clock.partition(":")[0] in others
        return f"{clock};" if is_known else time[0]  # the mark keeps the next number separate

    return TWELVE_HOURS.sub(written, text)


def _share_halves(hours: Counter[str], others: Counter[str]) -> None:
    """Discount hours without their own p.m., as 2 in "2 to 4 p.m.", if the other text has the hour plus 12."""
    for hour in range(1, NOON):
        shared = min(hours[str(hour)], others[str(hour + NOON)])
        hours[str(hour)] -= shared
        others[str(hour + NOON)] -= shared


def _codes(text: str) -> list[str]:
    return [found.group().casefold() for found in _CODE.finditer(text) if not _MEASURE.fullmatch(found.group())]


def _measure(code: re.Match[str]) -> str:
    """Keep an ordinal, decade or measure that looks like a code; replace a code by " "."""
    return code.group() if _MEASURE.fullmatch(code.group()) else " "


def _numbers(text: str) -> Counter[str]:
    """Count the numbers of a text by their digits.

    Groups of three digits form one number, and so does a fraction, with any separators; a date or a version is several
    numbers. Leading zeros count in numbers of three or more digits, such as a phone number, but not in a time.
    """
    numbers = Counter[str]()
    for found in _NUMBER.finditer(_GERMAN_TIME.sub(r"\1:\2", text)):
        first, *groups = _SEPARATOR.split(found.group())
        is_one = len(groups) < 2 or all(len(group) == 3 for group in groups[:-1])
        for digits in map(_ascii, ["".join([first, *groups])] if is_one else [first, *groups]):
            numbers[digits if len(digits) > _TIME_DIGITS and not groups else digits.lstrip("0") or "0"] += 1
    return numbers


def _ascii(digits: str) -> str:
    """Convert digits of any script to ASCII."""
    return "".join(str(unicodedata.digit(digit)) for digit in digits)


def _written(numbers: Counter[str], folded: str, language: str) -> Counter[str]:
    """Count the small numbers that a text may have as words; all of them if the words of the language are unknown."""
    words = _SMALL_NUMBERS.get(language.partition("-")[0].lower())
    small = {number: times for number, times in numbers.items() if len(number) < 3 and int(number) <= _MOST_SMALL}
    if words is None or not small:
        return Counter(small)
    begins = [found.group() for found in _WORD.finditer(folded)]
    return Counter({number: sum(begin.startswith(tuple(words[int(number)])) for begin in begins) for number in small})


def _names_lost(source: str, translation: str, language: str) -> int:
    """Count capitalised words inside a sentence whose first letters begin no word of the translation."""
    words = list(_WORD.finditer(source))
    if language.partition("-")[0].lower() in _CAPITALISED_NOUNS or not _LATIN.search(translation):
        return 0
    if not any(word.group().islower() and len(word.group()) > 1 for word in words):
        return 0  # a title, or a text in capitals
    stems = {_stem(word.group()) for word in _WORD.finditer(translation)}
    begins = {stem[:letters] for stem in stems for letters in range(1, _STEM + 1)}
    lost = 0
    for before, word in pairwise(words):
        name = word.group()
        is_name = len(name) > 1 and name[0].isupper() and _LATIN.match(name)
        if is_name and not _BEGINS_SENTENCE.search(source, before.end(), word.start()):
            lost += _stem(name) not in begins
    return lost


def _stem(word: str) -> str:
    """Give the first letters of a word, without accents."""
    letters = unicodedata.normalize("NFD", word.casefold()[: 2 * _STEM])
    return "".join(letter for letter in letters if not unicodedata.combining(letter))[:_STEM]


def _width(text: str) -> int:
    """Give the length of a text, converted to letters of a script with blanks between words."""
    return len(text) + (_UNSPACED_WIDTH - 1) * len(UNSPACED_CHARACTER.findall(text))


def _repeats(text: str) -> int:
    """Count words and phrases that are directly repeated."""
    words = [found.group() for found in _WORD.finditer(text.casefold())]
    return sum(
        words[start : start + size] == words[start + size : start + 2 * size]
        for size in range(1, _LONGEST_REPEAT + 1)
        for start in range(len(words) - 2 * size + 1)
    )
