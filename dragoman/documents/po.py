"""PO files of gettext: untranslated messages get a translation, all other content stays.

A plural form gets the translation of the singular if the header's formula gives this form for 1, and for no other
number up to 100; any other form gets the translation of the plural.
"""

import gettext
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import polib

from dragoman.documents.document import DocumentText
from dragoman.documents.inline import Tagged, from_html, has_words, to_html
from dragoman.documents.mnemonics import Label

_TAG: Final = re.compile(
    r"(?P<stop>[\n\t]|</?(?:br|p|div|li|ul|ol|h[1-6]|hr|table|tr|td|th)(?:\s[^<>]*)?/?>)"
    r"|<(?P<end>/)?(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>|<[A-Za-z][\w:.-]*(?:\s[^<>]*)?/>",
    re.IGNORECASE,
)
_CHARSET: Final = re.compile(rb'"Content-Type:[^"\n]*charset=([\w.:-]+)', re.IGNORECASE)
_PLURALS: Final = re.compile(r"nplurals\s*=\s*([1-9])\s*;\s*plural\s*=\s*([^;]+)")
_OF_QT: Final = "X-Qt-Contexts"  # a key in the header
_COUNTS: Final = range(101)
_WIDTH: Final = 78  # of a line that polib writes; gettext's default


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
    """

    protects_placeholders = True

    def __init__(self, file: polib.POFile, *, newline: str) -> None:
        """Find the missing translations.

        Args:
            file: the parsed file.
            newline: its line end.

        Raises:
            ValueError: an entry has a plural, and the header does not define the plural forms.
        """
        self._file, self._newline = file, newline
        self._gaps = [gap for gap in _gaps(file) if has_words(gap.label.tokens)]
        self.texts = [DocumentText(to_html(gap.label.tokens), _place(gap.entry)) for gap in self._gaps]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file, in UTF-8; see `Document`."""
        for gap, translation in zip(self._gaps, translations, strict=True):
            if translation is None:
                continue
            text = gap.text.source(gap.label.written(from_html(translation, gap.label.tokens)))
            if gap.forms:
                gap.entry.msgstr_plural.update(dict.fromkeys(gap.forms, text))
            else:
                gap.entry.msgstr = text
        header = self._file.metadata
        if "Content-Type" in header:
            header["Content-Type"] = re.sub(r"charset=[^\s;]+", "charset=UTF-8", header["Content-Type"])
        return str(self._file).replace("\n", self._newline).encode()


def read_po(content: bytes) -> PoDocument:
    """Read a file, in the charset that its header names.

    Raises:
        ValueError: the content is no PO file, or as `PoDocument`.
    """
    named = _CHARSET.search(content)
    charset = named[1].decode("ascii") if named and named[1] != b"CHARSET" else "utf-8"
    try:
        text = content.decode(charset).removeprefix("\ufeff")
    except (LookupError, UnicodeDecodeError) as error:
        raise ValueError(f"is not in the charset of its header, {charset}") from error
    newline = "\r\n" if "\r\n" in text else "\n"
    try:
        # polib opens a file if the text is the path of one; no path begins with a line break.
        file = polib.pofile("\n" + text.replace("\r\n", "\n"), wrapwidth=_WIDTH)
    except (OSError, ValueError, LookupError) as error:
        raise ValueError(f"is no PO file: {error}") from error
    if not (file.metadata or len(file)):
        raise ValueError("is no PO file: it has neither a header nor a message")
    return PoDocument(file, newline=newline)


def _gaps(file: polib.POFile) -> Iterator[_Gap]:
    """Find the missing translations of a file."""
    marks = "&" if _OF_QT in file.metadata else "&_"
    for entry in file:
        if entry.obsolete or entry.fuzzy:
            continue
        for text, forms in _missing(entry, file.metadata.get("Plural-Forms", "")):
            tagged = Tagged.read(text, _TAG)
            yield _Gap(entry, forms, tagged, Label.read(tagged.tokens, marks))


def _missing(entry: polib.POEntry, header: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Give the untranslated texts of an entry, each with the plural forms that it is for."""
    if entry.msgid_plural:
        yield from _missing_forms(entry, header)
    elif not entry.msgstr:
        yield entry.msgid, ()


def _missing_forms(entry: polib.POEntry, header: str) -> Iterator[tuple[str, Sequence[int]]]:
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
    return f"line {(entry.linenum or 1) - 1}"  # without the line break that was added in front
