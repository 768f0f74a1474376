"""PO files of gettext: untranslated messages get a translation, all other content stays byte for byte.

A plural form gets the translation of the singular if the header's formula gives this form for 1, and for no other
number up to 100; any other form gets the translation of the plural.
"""

import gettext
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

import polib

from dragoman.documents.document import DocumentText, StatedLanguages, lines_of
from dragoman.documents.inline import HTML_TAG, Tagged, from_html, has_words, to_html
from dragoman.documents.mnemonics import Label

_CHARSET: Final = re.compile(r'(?P<before>"Content-Type:[^"\n]*charset=)(?P<name>[\w.:-]+)', re.IGNORECASE)
_PLURALS: Final = re.compile(r"nplurals\s*=\s*([1-9])\s*;\s*plural\s*=\s*([^;]+)")
_OF_QT: Final = "X-Qt-Contexts"  # a key in the header
_COUNTS: Final = range(101)
# gettext needs no blank behind these, polib does.
_MARK: Final = re.compile(r"\s*(?:#(?:~\|(?=\S)|~(?=[^\s|])|[,:.|](?=\S)|(?=[^\s,:.|~]))|msg\w+(?=\"))")
_STRING: Final = re.compile(r'\s*(?:msg[\w\[\]]+\s*)?"')
_WHOLE: Final = re.compile(rf'{_STRING.pattern}(?:[^"\\]|\\.)*"\s*')
_ESCAPE: Final = re.compile(r"\\(?:(?P<bell>a)|x(?P<hexadecimal>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})|.)")
_MSGSTR: Final = re.compile(r"\s*msgstr")
_SYNTAX: Final = re.compile(r"\(line (\d+)\)(.*)")  # the end of polib's errors
_GOES_ON: Final = re.compile(r"\s*(?:msgstr|\"|\Z)")


class _Gap(NamedTuple):
    """A missing translation of an entry.

    Attributes:
        entry: the entry of the file.
        forms: the plural forms that the text is for; empty: the entry has no plural.
        text: the source text.
        label: the text to translate, without its mnemonic.
    """

    entry: polib.POEntry
    forms: Sequence[int]
    text: Tagged
    label: Label


class PoDocument:
    """A file of messages.

    Attributes:
        texts: one for each message that has no translation, and one for its plural.
        protects_placeholders: True.
        languages: the target language, if the header has one.
        unwritten: none.
    """

    protects_placeholders = True
    unwritten: Sequence[str] = ()

    def __init__(self, lines: Sequence[str]) -> None:
        """Find the missing translations.

        Args:
            lines: the lines of the file, with their line ends.

        Raises:
            ValueError: the lines are no PO file, or an entry has a plural, and the header does not define the plural
                forms.
        """
        self._lines = lines
        file = _parsed(lines)
        target = file.metadata.get("Language", "")
        self.languages = [StatedLanguages("", target, "Language in its header")] if target else []
        self._gaps = [gap for gap in _gaps(file) if has_words(gap.label.tokens)]
        self._spans = {gap.entry.linenum: _span(lines, gap.entry) for gap in self._gaps}
        self.texts = [DocumentText(to_html(gap.label.tokens), _place(gap.entry)) for gap in self._gaps]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file, in UTF-8; see `Document`."""
        filled: dict[int | None, polib.POEntry] = {}
        for gap, translation in zip(self._gaps, translations, strict=True):
            if translation is None:
                continue
            text = gap.text.source(gap.label.written(from_html(translation, gap.label.tokens)))
            filled[gap.entry.linenum] = gap.entry
            if gap.forms:
                gap.entry.msgstr_plural.update(dict.fromkeys(gap.forms, text))
            else:
                gap.entry.msgstr = text
        return "".join(self._pieces(filled)).encode()

    def _pieces(self, filled: Mapping[int | None, polib.POEntry]) -> Iterator[str]:
        """Yield the lines of the file, with the new translations of entries."""
        newline = "\r\n" if any(line.endswith("\r\n") for line in self._lines) else "\n"
        done = 0
        for number, entry in filled.items():
            start, stop = self._spans[number]
            yield from self._lines[done:start]
            written = str(polib.POEntry(msgstr=entry.msgstr, msgstr_plural=entry.msgstr_plural))
            for line in written.rstrip("\n").split("\n")[1:]:  # without its msgid
                yield line.replace("\a", r"\a") + newline
            done = stop
        yield from self._lines[done:]


class _Lines(NamedTuple):
    """Lines for polib, which opens a text that is the path of a file, and breaks lines at U+2028, too."""

    lines: list[str]

    def splitlines(self) -> list[str]:
        """Give the lines."""
        return self.lines


def read_po(content: bytes) -> PoDocument:
    """Read a file, in the charset that its header names.

    Raises:
        ValueError: the content is no PO file, or as `PoDocument`.
    """
    named = _CHARSET.search(content.decode("latin-1"))
    charset = named["name"] if named and named["name"] != "CHARSET" else "utf-8"
    try:
        text = content.decode(charset).removeprefix("\ufeff")
    except (LookupError, UnicodeDecodeError) as error:
        raise ValueError(f"is not in the charset of its header, {charset}") from error
    if named and named["name"].lower() != "utf-8":
        text = _CHARSET.sub(r"\g<before>UTF-8", text, count=1)
    return PoDocument(lines_of(text.encode()))


def _parsed(lines: Sequence[str]) -> polib.POFile:
    readable = [_readable(line, number) for number, line in enumerate(lines, start=1)]
    try:
        file = polib.pofile(cast("str", _Lines(readable)), encoding="utf-8")
    except (OSError, ValueError, LookupError) as error:
        found = _SYNTAX.search(str(error))
        raise ValueError(f"is no PO file{f', at line {found[1]}{found[2]}' if found else f': {error}'}") from error
    if not (file.metadata or len(file)):
        raise ValueError("is no PO file: it has neither a header nor a message")
    return file


def _readable(line: str, number: int) -> str:
    """Write a line as polib reads it; raises ValueError for a string without its quotation marks."""
    if _STRING.match(line):
        if not _WHOLE.fullmatch(line):
            raise ValueError(f'is no PO file: line {number}: a string must end with ", and have \\" for one inside it')
        line = _ESCAPE.sub(_unescaped, line)
    return _MARK.sub(r"\g<0> ", line, count=1) if _MARK.match(line) else line


def _unescaped(found: re.Match[str]) -> str:
    """Resolve an escape that polib does not know."""
    if found["bell"]:
        return "\a"
    code = int(found["hexadecimal"], 16) if found["hexadecimal"] else int(found["octal"] or "0", 8)
    return polib.escape(chr(code)) if chr(code).isascii() and chr(code).isprintable() else found[0]


def _span(lines: Sequence[str], entry: polib.POEntry) -> tuple[int, int]:
    """Find the lines [start, stop) of an entry's translations."""
    start = max((entry.linenum or 1) - 1, 0)
    while start < len(lines) and not _MSGSTR.match(lines[start]):
        start += 1
    if start == len(lines):
        raise ValueError(f"is no PO file: {_place(entry)}: the message has no msgstr")
    stop = end = start
    while end < len(lines) and _GOES_ON.match(lines[end]):
        end += 1
        stop = end if lines[end - 1].strip() else stop
    return start, stop


def _gaps(file: polib.POFile) -> Iterator[_Gap]:
    """Find the missing translations of a file."""
    marks = "&" if _OF_QT in file.metadata else "&_"
    for entry in file:
        if entry.obsolete or entry.fuzzy:
            continue
        for text, forms in _missing(entry, file.metadata.get("Plural-Forms", "")):
            tagged = Tagged.read(text, HTML_TAG)
            yield _Gap(entry, forms, tagged, Label.read(tagged.tokens, marks))


def _missing(entry: polib.POEntry, header: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Give the untranslated texts of an entry, each with the plural forms that it is for."""
    if not entry.msgid_plural:
        if not entry.msgstr:
            yield entry.msgid, ()
        return
    count, singular = _plural_forms(header, entry)
    missing = [form for form in range(count) if not entry.msgstr_plural.get(form)]
    for form in missing:
        entry.msgstr_plural[form] = ""
    of_one = [form for form in missing if form == singular]
    others = [form for form in missing if form != singular]
    for text, forms in ((entry.msgid, of_one), (entry.msgid_plural, others)):
        if forms:
            yield text, forms


def _plural_forms(header: str, entry: polib.POEntry) -> tuple[int, int | None]:
    """Read the number of plural forms, and the form for exactly one thing; None if no form is for 1 alone."""
    found = _PLURALS.search(header)
    if found is None:
        raise ValueError(
            f"{_place(entry)} has a plural, and no Plural-Forms in the header says which forms the target language has"
        )
    try:
        form_of = gettext.c2py(found[2])
        forms = [form_of(count) for count in _COUNTS]
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"Plural-Forms in the header: {error}") from error
    return int(found[1]), forms[1] if forms.count(forms[1]) == 1 else None


def _place(entry: polib.POEntry) -> str:
    return f"line {entry.linenum or 1}"
