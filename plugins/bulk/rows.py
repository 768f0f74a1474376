"""What every format of files does: finds the rows of a file, reads some of them, writes them with their outcomes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from plugins.bulk.columns import Columns, Outcome


class Row(NamedTuple):
    """A row of a file, before it is read to be translated.

    Attributes:
        id: of the row.
        start: where it begins, in the file's own units: bytes, or rows.
        end: where it ends.
        size_bytes: of its text, or somewhat more.
    """

    id: str
    start: int
    end: int
    size_bytes: int


class Rows(Protocol):
    """Some rows of a file, with all their columns."""

    @property
    def texts(self) -> Sequence[object]:
        """What the column of the texts holds; not every value need be a text."""

    def with_outcomes(self, outcomes: Sequence[Outcome]) -> bytes:
        """Write a file of these rows, an outcome behind each."""


class Format(Protocol):
    """One format."""

    def scan(self, path: Path, columns: Columns) -> Iterator[Row]:
        """Yield the rows of a file.

        Raises:
            DataError: the file is not of this format, lacks a column, or has a row without an id.
            OSError: it cannot be read.
        """

    def read(self, path: Path, columns: Columns, start: int, end: int) -> Rows:
        """Read the rows between two places that `scan` named; raises as `scan`."""
