"""Plain text: each line is a text."""

import re
from collections.abc import Sequence
from typing import Final

from dragoman.documents.document import DocumentText, StatedLanguages, lines_of
from dragoman.documents.inline import Tagged, from_html, has_letter, to_html

_TAB: Final = re.compile("(?P<stop>\t)")


class PlainText:
    """Lines of text.

    Attributes:
        texts: one for each line with words.
        protects_placeholders: False.
        languages: none.
        unwritten: none.
    """

    protects_placeholders = False
    languages: Sequence[StatedLanguages] = ()
    unwritten: Sequence[str] = ()

    def __init__(self, content: bytes) -> None:
        """Read lines with any kind of line ends; raises ValueError if they are not UTF-8."""
        self._lines = lines_of(content)
        self._places = [place for place, line in enumerate(self._lines) if has_letter(line)]
        self.texts = [
            DocumentText(to_html(_tagged(self._lines[place]).tokens), f"line {place + 1}") for place in self._places
        ]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file; blanks around a line stay. See `Document`."""
        lines = list(self._lines)
        for place, translation in zip(self._places, translations, strict=True):
            if translation is not None:
                before, _, behind = lines[place].partition(_words(lines[place]))
                tagged = _tagged(lines[place])
                lines[place] = f"{before}{tagged.source(from_html(translation, tagged.tokens))}{behind}"
        return "".join(lines).encode()


def _words(line: str) -> str:
    """Remove the blanks around a line, and a byte order mark."""
    return line.removeprefix("\ufeff").strip()


def _tagged(line: str) -> Tagged:
    return Tagged.read(_words(line), _TAB)
