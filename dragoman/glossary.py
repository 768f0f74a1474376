"""Glossaries: terms with their allowed translations, and the file formats for terms (CSV, TSV, TMX).

A file of columns has a line for each term: the source term; the allowed target terms, separated by `|` (none: the term
stays unchanged); and optionally, in the third column, `true` if letter case does not matter. The first line may name
the languages, such as `en,de`.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dragoman import tmx
from dragoman.errors import DataError
from dragoman.files import open_regular

MAX_TERM_CHARACTERS: Final = 256
MAX_FORMS: Final = 16
MAX_FILE_BYTES: Final = 10 * 2**20
MAX_FILE_ENTRIES: Final = 100_000
MAX_CALL_ENTRIES: Final = 1_000  # of one call: sorting this many before admission takes a millisecond
SUFFIXES: Final = (".csv", ".tsv", ".tmx")

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
# Delimiters of other formats: a sign that the file has the wrong one.
_OTHERS: Final = {".csv": re.compile(r"[;\t]"), ".tsv": re.compile(r"[;,]")}
_QUOTED: Final = 64  # maximum characters of a cell in a message
# In lower case: a first line with two such words counts as the names of the languages, see `_is_header`.
_CODE: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_NAMED: Final = re.compile(rf".+\.({_CODE.pattern})-({_CODE.pattern})")
_CASE: Final = {"": False, "false": False, "true": True}


class GlossaryEntry(NamedTuple):
    """A term with its allowed translations.

    Attributes:
        source_term: whole words, as they stand in texts.
        target_terms: the translation must contain one of these, exactly; empty: it must contain the source term.
        ignore_case: whether the term is found in any letter case.
    """

    source_term: str
    target_terms: Sequence[str] = ()
    ignore_case: bool = False


class GlossaryFile(NamedTuple):
    """The content of a file.

    Attributes:
        entries: the entries in the order of the file.
        source_language: BCP-47 code; "": the file does not say.
        target_language: BCP-47 code; "": the file does not say.
    """

    entries: Sequence[GlossaryEntry]
    source_language: str = ""
    target_language: str = ""

    @classmethod
    def read(cls, path: Path) -> "GlossaryFile":
        """Read a file.

        The languages are those of the file name, such as products.en-de.csv, or else those in the file.

        Raises:
            DataError: the file is unreadable or invalid; one line with the file name and, if any, the line number.
        """
        try:
            with open_regular(path) as stream:
                content = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise DataError(f"{path}: cannot read: {error.strerror}") from error
        if len(content) > MAX_FILE_BYTES:
            raise DataError(f"{path}: must be at most {MAX_FILE_BYTES} bytes")
        try:
            return parse_glossary(path.name, content)
        except ValueError as error:
            raise DataError(f"{path}: {error}") from error


def wrong_term(term: str) -> str:
    """Say what is wrong with a source term or target term; "" if nothing is wrong."""
    if not 1 <= len(term) <= MAX_TERM_CHARACTERS:
        return f"must have 1 to {MAX_TERM_CHARACTERS} characters, has {len(term)}"
    if term != term.strip():
        return "must have no blanks at its ends"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in term):
        return "must have no line breaks and no control characters"
    return ""


def crowded(entries: Iterable[GlossaryEntry]) -> Iterator[tuple[int, int]]:
    """Find terms with too many target terms; entries with the same source term count together.

    Yields:
        The index of each entry that brings its term over `MAX_FORMS` target terms, and the number reached.
    """
    forms: dict[tuple[str, bool], set[str]] = {}
    for place, (source, targets, ignore_case) in enumerate(entries):
        found = forms.setdefault((source, ignore_case), set())
        found.update(targets or ("",))
        if len(found) > MAX_FORMS:
            yield place, len(found)


def parse_glossary(name: str, content: bytes) -> GlossaryFile:
    """Read the content of a file.

    Args:
        name: the name of the file; its suffix decides the format.
        content: the content in UTF-8; for TMX, in the encoding of its first line.

    Raises:
        ValueError: the content is invalid.
    """
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    named = _NAMED.fullmatch(stem)
    languages = (named[1], named[2]) if named else ("", "")
    if suffix == ".tmx":
        languages, units = tmx.parse(content, *languages)
        entries = [_entry(f"unit {number}", source, [target]) for number, source, target in units]
    elif suffix in _DELIMITERS:
        rows = list(_rows(content, _DELIMITERS[suffix]))
        if rows and all(len(cells) == 1 and _OTHERS[suffix].search(cells[0]) for _, cells in rows):
            raise _other_delimiter(suffix, *rows[0])
        if rows and _is_header(rows[0][1], languages):
            header = rows.pop(0)[1]
            languages = languages if named else (header[0], header[1])
        entries = [_of_columns(f"line {number}", cells) for number, cells in rows]
    else:
        raise ValueError(f"must end with {', '.join(SUFFIXES)}")
    if len(entries) > MAX_FILE_ENTRIES:
        raise ValueError(f"must have at most {MAX_FILE_ENTRIES} terms, has {len(entries)}")
    for place, count in crowded(entries):
        term = entries[place].source_term
        raise ValueError(f"the term {term!r} must have at most {MAX_FORMS} forms in all lines, has {count} or more")
    return GlossaryFile(entries, *languages)


def _rows(content: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, with their numbers: a list of cells, stripped of blanks."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"must be UTF-8: byte {error.start} is not") from error
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in lines:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                yield lines.line_num, stripped
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num}: {error}") from error


def _is_header(cells: Sequence[str], named: Sequence[str]) -> bool:
    """Tell whether a first line names the languages; if the file name does, any other two words are a term.

    Args:
        cells: the cells of the line.
        named: the languages of the file name, or empty strings.
    """
    if len(cells) != 2 or not all(map(_CODE.fullmatch, cells)):
        return False
    return all(
        not code or cell.partition("-")[0] == code.partition("-")[0] for cell, code in zip(cells, named, strict=True)
    )


def _other_delimiter(suffix: str, number: int, cells: Sequence[str]) -> ValueError:
    """Make the error for a file in which every line is one cell that contains another delimiter."""
    own = {",": "commas", "\t": "tabs"}[_DELIMITERS[suffix]]
    return ValueError(f"line {number}: columns must be separated by {own}, is {cells[0][:_QUOTED]!r}")


def _of_columns(where: str, cells: Sequence[str]) -> GlossaryEntry:
    if len(cells) > 3:
        raise ValueError(f"{where}: must have at most 3 columns, has {len(cells)}")
    source, targets, case = (*cells, "", "")[:3]
    if case.lower() not in _CASE:
        raise ValueError(
            f"{where}: the third column must be true, false or empty, is {case[:_QUOTED]!r}; forms are separated by '|'"
        )
    forms = [form.strip() for form in targets.split("|")] if targets else []
    return _entry(where, source, forms, ignore_case=_CASE[case.lower()])


def _entry(where: str, source: str, forms: Sequence[str], *, ignore_case: bool = False) -> GlossaryEntry:
    for kind, term in (("the source term", source), *(("a target term", form) for form in forms)):
        if wrong := wrong_term(term):
            raise ValueError(f"{where}: {kind} {wrong}")
    if len(forms) > MAX_FORMS:
        raise ValueError(f"{where}: must have at most {MAX_FORMS} forms, has {len(forms)}")
    return GlossaryEntry(source, tuple(forms), ignore_case)
