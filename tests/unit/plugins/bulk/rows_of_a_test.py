"""What the tests of all formats do: find rows, read some, write them with outcomes."""

from pathlib import Path

from plugins.bulk.columns import Columns, Outcome
from plugins.bulk.formats import format_of
from plugins.bulk.rows import Row

COLUMNS = Columns("id", "text")
GOOD = Outcome("Hallo.", "EOS", False, 0, None, "abc")
BAD = Outcome(None, None, None, None, "is empty", "abc")


def scan(path: Path) -> list[Row]:
    return list(format_of(path).scan(path, COLUMNS))


def texts(path: Path, rows: list[Row]) -> list[object]:
    """Reads the rows from the first to the last of these."""
    return list(format_of(path).read(path, COLUMNS, rows[0].start, rows[-1].end).texts)


def written(path: Path, rows: list[Row], *outcomes: Outcome) -> bytes:
    return format_of(path).read(path, COLUMNS, rows[0].start, rows[-1].end).with_outcomes(outcomes)
