"""The interface of the file formats: find the rows of a file, read some of them, write them with their outcomes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from plugins.bulk.columns import Columns, Outcome


class Row(NamedTuple):
    """A row of a file, before its text is read.

    Attributes:
        id: the id of the row.
        start: its start, in the file's own units: bytes, or rows.
        end: its end.
        size_bytes: the size of its text, or somewhat more.
    """

    id: str
    start: int
    end: int
    size_bytes: int


class Rows(Protocol):
    """Some rows of a file, with all their columns."""

    @property
    def texts(self) -> Sequence[object]:
        """The values of the text column; a value need not be a text."""

    def with_outcomes(self, outcomes: Sequence[Outcome]) -> bytes:
        """Write a file of these rows, each followed by its outcome."""


class Format(Protocol):
    """One format."""

    def scan(self, path: Path, columns: Columns) -> Iterator[Row]:
        """Yield the rows of a file.

        Raises:
            DataError: the file is not of this format, lacks a column, or has a row without an id.
            OSError: the file cannot be read.
        """

    def read(self, path: Path, columns: Columns, start: int, end: int) -> Rows:
        """Read the rows between two positions that `scan` gave; raises as `scan` does."""
