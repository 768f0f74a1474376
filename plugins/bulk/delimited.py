"""CSV and TSV: the first line names the columns. TSV has no quotation marks, and no field holds a tab."""

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.errors import DataError
from dragoman.files import open_regular
from plugins.bulk.columns import Columns, Outcome, checked_id, wrong_columns
from plugins.bulk.lines import lines_between
from plugins.bulk.rows import Row

_BLANKS: Final = str.maketrans("\t\r\n", "   ")
# The row writer gets this line end, so that it quotes fields with either character.
_LINE_END: Final = "\r\n"


class _Record(NamedTuple):
    """The fields of a row, with its start and end in bytes."""

    start: int
    end: int
    fields: list[str]


class Delimited:
    """Reads and writes one of the two formats."""

    def __init__(self, **dialect: Any) -> None:
        """Store the dialect: arguments of the `csv` module."""
        self._dialect = dialect

    def scan(self, path: Path, columns: Columns) -> Iterator[Row]:
        """As `Format.scan`."""
        with open_regular(path) as stream:
            header = self._header(path, stream)
            if wrong := wrong_columns(header.fields, columns):
                raise DataError(f"{path}: {wrong}")
            place = header.fields.index(columns.id)
            for number, record in enumerate(self._records(path, stream, header.end, None), start=1):
                if len(record.fields) != len(header.fields):
                    counts = f"has {len(record.fields)} fields, the first line {len(header.fields)}"
                    raise DataError(f"{path}: row {number}: {counts}")
                try:
                    row_id = checked_id(record.fields[place])
                except ValueError as error:
                    raise DataError(f"{path}: row {number}: {columns.id!r} {error}") from error
                yield Row(row_id, record.start, record.end, record.end - record.start)

    def read(self, path: Path, columns: Columns, start: int, end: int) -> "DelimitedRows":
        """As `Format.read`."""
        with open_regular(path) as stream:
            header = self._header(path, stream).fields
            records = [record.fields for record in self._records(path, stream, start, end)]
        return DelimitedRows(header, records, columns, self._dialect)

    def _header(self, path: Path, stream: BufferedReader) -> _Record:
        return next(self._records(path, stream, 0, None), _Record(0, 0, []))

    def _records(self, path: Path, stream: BufferedReader, start: int, end: int | None) -> Iterator[_Record]:
        """Yield the rows; a field may hold line breaks."""
        csv.field_size_limit(sys.maxsize)  # for the whole process: a text may be long
        position = start

        def lines() -> Iterator[str]:
            nonlocal position
            for line in lines_between(stream, start, end):
                position = line.end
                yield line.text

        reader = csv.reader(lines(), strict=True, **self._dialect)
        begin = start
        try:
            for fields in reader:
                if fields:
                    yield _Record(begin, position, fields)
                begin = position
        except csv.Error as error:
            raise DataError(f"{path}: the row at byte {begin}: {error}") from error


class _Lines(io.StringIO):
    """A stream for written rows that ends each row with a single line feed."""

    def write(self, row: str) -> int:
        """Add one row."""
        return super().write(row.removesuffix(_LINE_END) + "\n")


class DelimitedRows:
    """Rows of a file."""

    def __init__(
        self, header: list[str], records: Sequence[list[str]], columns: Columns, dialect: Mapping[str, Any]
    ) -> None:
        self._header, self._records, self._dialect = header, records, dialect
        place = header.index(columns.text)
        self.texts = [fields[place] for fields in records]

    def with_outcomes(self, outcomes: Sequence[Outcome]) -> bytes:
        """As `Rows.with_outcomes`."""
        stream = _Lines()
        writer = csv.writer(stream, lineterminator=_LINE_END, **self._dialect)
        writer.writerow([*self._header, *Outcome._fields])
        for fields, outcome in zip(self._records, outcomes, strict=True):
            writer.writerow([*fields, *(self._field(value) for value in outcome)])
        return stream.getvalue().encode(errors="surrogateescape")

    def _field(self, value: object) -> str:
        if value is None or isinstance(value, bool):
            return "" if value is None else str(value).lower()
        return str(value).translate(_BLANKS) if self._dialect["delimiter"] == "\t" else str(value)


CSV: Final = Delimited(delimiter=",")
TSV: Final = Delimited(delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
