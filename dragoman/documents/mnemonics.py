"""Mnemonics of labels, as the F of "&File" (Qt, Windows) and "_File" (GTK): removed from a text, put into another.

A mark stands before the first letter or digit of a word, or before a small letter inside a word, as in "E&xit". "R&D",
"a & b", "&amp;" and "file_name" have no mark; a text with several marks has no mnemonic.

A label may be a text of HTML: its character references are resolved for the model, and written again. A reference whose
character the text also has as such, or that is none of one printable character, is a kept word.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from dragoman.documents.inline import Kind, Token

_OPENING: Final = "\"'“‘«(&"  # may stand before a mark; for "&&", the first & stands before the second
# Placeholders, addresses and character references hold neither marks nor letters.
_CODE: Final = r"%\([^()]*\)\w|%[-+#.*\d$]*[a-zA-Z]{0,2}|\$?\{[^{}]*\}|\$\w+|\w+://\S+|&(?:#?\w+;|\w+=)"
_REFERENCE: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_MARKS: Final = re.compile(rf"{_CODE}|&&|(?P<mark>[&_])")
_LETTERS: Final = re.compile(rf"{_CODE}|(?P<letter>[^\W_])")
_WORD_BEFORE: Final = re.compile(r"[^\W_]*\Z")
# In languages without small letters, a Latin letter follows the text: "文件(&F)".
_APPENDED: Final = re.compile(r"\s?\([&_][^\W_]\)")
_IDEOGRAPH: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_END: Final = re.compile(r"[\s.…:：]*\Z")


class _Place(NamedTuple):
    """A position in tokens.

    Attributes:
        number: the index of the token.
        start: the index in the token's text.
        text: the text of the token.
    """

    number: int
    start: int
    text: str

    @property
    def word_before(self) -> str:
        """The letters and digits directly before the position."""
        found = _WORD_BEFORE.search(self.text[: self.start])
        return found[0] if found else ""


class Label(NamedTuple):
    """A text of a user interface.

    Attributes:
        tokens: the tokens of the text, without the mark; kept words have the reference as their text.
        mark: the mark of the mnemonic; "": the text has none.
        letter: the mnemonic.
        doubles: whether an & in the text is written twice.
        references: the characters that are written as character references, each with its reference.
    """

    tokens: list[Token]
    mark: str = ""
    letter: str = ""
    doubles: bool = False
    references: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def read(cls, tokens: Sequence[Token], marks: str) -> "Label":
        """Remove the mark from a text.

        Args:
            tokens: the tokens of the text.
            marks: the possible mark characters: "&", or "&_".
        """
        label = cls(list(tokens))
        for mark in marks:
            places = list(_places(tokens, mark))
            real = [place for place in places if _is_mark(place)]
            # Several underscores belong to names or emphasis, while a further & may be the word "and".
            if len(real) == 1 and (mark == "&" or len(places) == 1):
                label = cls(_without(tokens, real[0]), mark, real[0].text[real[0].start + 1])
                break
        source = "".join(token.text for token in label.tokens)
        if "&" in marks and "&&" in source and source.count("&") == 2 * source.count("&&"):
            single = [token._replace(text=token.text.replace("&&", "&")) for token in label.tokens]
            label = label._replace(tokens=single, doubles=True)
        else:
            references = _references(source)
            label = label._replace(tokens=list(_resolved(label.tokens, references)), references=references)
        return label

    def written(self, tokens: Sequence[Token]) -> list[Token]:
        """Put the mark into a translation: before the same letter if there is one, else before the first letter."""
        written = list(tokens)
        if self.doubles:
            written = [token._replace(text=token.text.replace("&", "&&")) for token in tokens]
        elif self.references:
            table = str.maketrans(dict(self.references))
            written = [token._replace(text=token.text.translate(table)) for token in tokens]
        references = [token for token in self.tokens if token.kind is Kind.KEPT and token.text]
        kept = {token.tag: Token(Kind.TEXT, token.text) for token in references}
        written = [kept.get(token.tag, token) for token in written]
        letters = list(_letters(written)) if self.mark else []
        if letters:
            best = min(letters, key=self._rank)
            appends = not self._is_same(best) and _IDEOGRAPH.match(best.text, best.start)
            _insert(written, *(_appended(letters[-1], self) if appends else (best, self.mark)))
        return written

    def _rank(self, place: _Place) -> tuple[bool, bool]:
        """Rank a letter, lower is better: the same letter first, and among those a letter that begins a word."""
        if self._is_same(place):
            return False, bool(place.word_before)
        return True, place.text[place.start].isdigit()

    def _is_same(self, place: _Place) -> bool:
        return place.text[place.start].casefold() == self.letter.casefold()


def _references(source: str) -> dict[str, str]:
    """Map the characters of a text that occur only as character references to these."""
    characters = {html.unescape(reference): reference for reference in _REFERENCE.findall(source)}
    bare = _REFERENCE.sub("", source)
    return {
        character: reference
        for character, reference in characters.items()
        if len(character) == 1 and character >= " " and character not in bare
    }


def _resolved(tokens: Sequence[Token], references: Mapping[str, str]) -> Iterator[Token]:
    """Resolve the character references of some characters; each other reference becomes a kept word."""
    number = max((token.tag for token in tokens), default=-1) + 1
    for token in tokens:
        text, done = "", 0
        for found in _REFERENCE.finditer(token.text):
            text += token.text[done : found.start()]
            done = found.end()
            character = html.unescape(found[0])
            if character in references:
                text += character
                continue
            if text:
                yield token._replace(text=text)
            yield Token(Kind.KEPT, found[0], number)
            text, number = "", number + 1
        if text or done < len(token.text) or not token.text:
            yield token._replace(text=text + token.text[done:])


def _places(tokens: Sequence[Token], mark: str) -> Iterator[_Place]:
    for number, token in enumerate(tokens):
        for found in _MARKS.finditer(token.text):
            if found["mark"] == mark:
                yield _Place(number, found.start(), token.text)


def _letters(tokens: Sequence[Token]) -> Iterator[_Place]:
    for number, token in enumerate(tokens):
        for found in _LETTERS.finditer(token.text):
            if found["letter"]:
                yield _Place(number, found.start(), token.text)


def _is_mark(place: _Place) -> bool:
    text, start = place.text, place.start
    behind, word = text[start + 1 : start + 2], place.word_before
    if not word:
        before = text[start - 1 : start] if start else " "
        return behind.isalnum() and (before.isspace() or before in _OPENING)
    # Program names rarely begin with a capital letter: "Cu_t" has a mark, "file_name" has none.
    return word[-1].isalpha() and behind.islower() and (text[start] == "&" or word[0].isupper())


def _without(tokens: Sequence[Token], place: _Place) -> list[Token]:
    """Remove a mark; its letter too, if both stand in brackets after the text."""
    text = place.text
    appended = _APPENDED.finditer(text) if any(map(_has_no_case, text[: place.start])) else ()
    whole = next((each.span() for each in appended if place.start in range(*each.span())), None)
    start, stop = whole or (place.start, place.start + 1)
    left = list(tokens)
    left[place.number] = tokens[place.number]._replace(text=text[:start] + text[stop:])
    return left


def _has_no_case(letter: str) -> bool:
    return letter.isalpha() and letter.upper() == letter.lower()


def _appended(last: _Place, label: Label) -> tuple[_Place, str]:
    """Give the position of a letter in brackets, and its source."""
    end = _END.search(last.text)
    return last._replace(start=end.start() if end else len(last.text)), f"({label.mark}{label.letter.upper()})"


def _insert(tokens: list[Token], place: _Place, text: str) -> None:
    tokens[place.number] = tokens[place.number]._replace(
        text=place.text[: place.start] + text + place.text[place.start :]
    )
