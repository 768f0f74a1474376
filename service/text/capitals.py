"""Sentences in capitals: a model has seen few of them, so it reads them in small letters."""

import re
from typing import Final

from service.rewriting import Edit, Rewriting

_FEWEST_LETTERS: Final = 5  # shorter texts may be acronyms: NATO
_LETTER: Final = re.compile(r"[^\W\d_]")
_ALONE: Final = {"en": re.compile(r"\bi\b")}  # words that are capitals anyway


def in_small_letters(text: str, language: str) -> str:
    """Write a text without small letters as a sentence: its first letter is a capital.

    Args:
        language: of the text, a BCP-47 code; "" where it is not known.

    Returns:
        The sentence, with as many characters as the text; "" where the text is no sentence in capitals.
    """
    letters = _LETTER.findall(text)
    small = text.lower()
    # A Turkish dotted I becomes two characters, ẞ would come back as SS, and letters without case are no capitals.
    if len(letters) < _FEWEST_LETTERS or small.upper() != text or not all(map(str.isupper, letters)):
        return ""
    first = text.index(letters[0])
    small = small[:first] + letters[0] + small[first + 1 :]
    alone = _ALONE.get(language.partition("-")[0].lower())
    return small if alone is None else alone.sub(lambda word: word[0].upper(), small)


def in_capitals(text: str) -> Rewriting:
    """Write a translation in capitals; a letter may become two, as ß does."""
    return Rewriting(
        text, [Edit(place, place + 1, each.upper()) for place, each in enumerate(text) if each != each.upper()]
    )
