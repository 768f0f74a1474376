"""A glossary: terms with the translations that they may have, and the files that hold such terms (CSV, TSV, TMX).

A file of columns has a line for each term: the source term, the forms that its translation may have, with `|` between
them (none: the term stays as it is), and, where there is a third column, `true` where letter case does not matter. The
first line may name the languages, such as `en,de`.
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
SUFFIXES: Final = (".csv", ".tsv", ".tmx")

_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
_OTHERS: Final = re.compile(r"[;\t]")  # delimiters, where columns are separated by none
_QUOTED: Final = 64  # characters of a cell that a message repeats
# Small letters first: a line of two such words is taken for the names of languages.
_CODE: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_NAMED: Final = re.compile(rf".+\.({_CODE.pattern})-({_CODE.pattern})")
_CASE: Final = {"": False, "false": False, "true": True}


class GlossaryEntry(NamedTuple):
    """A term with the translations that it may have.

    Attributes:
        source_term: as it stands in texts: whole words.
        target_terms: of which one is to stand in the translation, as it is; none: the term is kept as it is.
        ignore_case: whether it is found in any letter case, too.
    """

    source_term: str
    target_terms: Sequence[str] = ()
    ignore_case: bool = False


class GlossaryFile(NamedTuple):
    """What a file says.

    Attributes:
        entries: in its order.
        source_language: BCP-47 code; "": it does not say.
        target_language: likewise.
    """

    entries: Sequence[GlossaryEntry]
    source_language: str = ""
    target_language: str = ""

    @classmethod
    def read(cls, path: Path) -> "GlossaryFile":
        """Read a file.

        The languages are those of its name, such as products.en-de.csv, else those that the file itself tells.

        Raises:
            DataError: it cannot be read, or is wrong; one line that names the file and, if it is one, the line.
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
    """Say what is wrong with a term, or with a form of one; "" if nothing is."""
    if not 1 <= len(term) <= MAX_TERM_CHARACTERS:
        return f"must have 1 to {MAX_TERM_CHARACTERS} characters, has {len(term)}"
    if term != term.strip():
        return "must have no blanks at its ends"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in term):
        return "must have no line breaks and no control characters"
    return ""


def crowded(entries: Iterable[GlossaryEntry]) -> Iterator[tuple[int, int]]:
    """Find terms with too many forms; entries of the same term are one, with the forms of all.

    Yields:
        The place of each entry with which a term has more than `MAX_FORMS` forms, and how many it has then.
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
        name: of the file, whose end says how it is written.
        content: in UTF-8; of TMX in what its first line says.

    Raises:
        ValueError: it is wrong.
    """
    stem, suffix = Path(name).stem, Path(name).suffix.lower()
    named = _NAMED.fullmatch(stem)
    languages = (named[1], named[2]) if named else ("", "")
    if suffix == ".tmx":
        languages, units = tmx.parse(content, *languages)
        entries = [_entry(f"unit {number}", source, [target]) for number, source, target in units]
    elif suffix in _DELIMITERS:
        rows = list(_rows(content, _DELIMITERS[suffix]))
        if rows and all(len(cells) == 1 and _OTHERS.search(cells[0]) for _, cells in rows):
            raise _other_delimiter(suffix, *rows[0])
        if rows and len(rows[0][1]) == 2 and all(map(_CODE.fullmatch, rows[0][1])):
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
    """Yield the lines with something in them, with their numbers: cells without blanks at their ends."""
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


def _other_delimiter(suffix: str, number: int, cells: Sequence[str]) -> ValueError:
    """Make the error of a file all of whose lines are one cell with another delimiter in it."""
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
