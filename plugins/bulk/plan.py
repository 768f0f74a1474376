"""The plan of a job: the rows of each output part. The same input always gives the same plan."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.errors import DataError
from plugins.bulk.columns import Columns
from plugins.bulk.formats import format_of
from plugins.bulk.rows import Row
from plugins.bulk.unique import SeenIds

_PART_BYTES: Final = 4 * 2**20  # bytes of text, if the part has several rows


class Chunk(NamedTuple):
    """Consecutive rows of a file, from which one output part is made. Of plain values only.

    Attributes:
        number: the number of the part, from 0.
        path: the path of the file.
        start: where the rows begin in the file, see `Row`.
        end: where the rows end.
        rows: the number of rows.
        size_bytes: the size of their texts, or somewhat more.
        file_bytes: the size of the file when the plan was made ...
        modified_ns: ... and its modification time then.
    """

    number: int
    path: str
    start: int
    end: int
    rows: int
    size_bytes: int
    file_bytes: int
    modified_ns: int

    def part(self, out: Path) -> Path:
        """Give the path of the part."""
        return out / f"part-{self.number:08}{Path(self.path).suffix.lower()}"

    def check_unchanged(self) -> None:
        """Check that the file has not changed since the plan was made.

        Raises:
            DataError: the file has changed.
            OSError: the file is gone.
        """
        status = Path(self.path).stat()
        if (status.st_size, status.st_mtime_ns) != (self.file_bytes, self.modified_ns):
            raise DataError(f"{self.path}: was changed while it was translated")


def planned(files: Sequence[Path], columns: Columns, part_rows: int) -> list[Chunk]:
    """Make the plan.

    Args:
        files: the files; all are read once.

    Raises:
        DataError: a file cannot be used, or two rows have the same id.
        OSError: a file cannot be read.
    """
    seen = SeenIds()
    chunks: list[Chunk] = []
    for path in files:
        status = path.stat()
        for cut in _cut(seen.each(format_of(path).scan(path, columns)), part_rows):
            chunks.append(Chunk(len(chunks), str(path), *cut, status.st_size, status.st_mtime_ns))
    if repeated := seen.repeated():
        _refuse_repeated(files, columns, repeated)
    return chunks


def _cut(rows: Iterable[Row], part_rows: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the start, end, number of rows and size of each chunk."""
    start = end = count = size_bytes = 0
    for row in rows:
        if count and (count == part_rows or size_bytes + row.size_bytes > _PART_BYTES):
            yield start, end, count, size_bytes
            count = size_bytes = 0
        start, end = start if count else row.start, row.end
        count, size_bytes = count + 1, size_bytes + row.size_bytes
    if count:
        yield start, end, count, size_bytes


def _refuse_repeated(files: Sequence[Path], columns: Columns, repeated: set[int]) -> None:
    """Raise an error with the first two rows of the same id, unless only their hashes are equal."""
    places: dict[str, str] = {}
    for path in files:
        for number, row in enumerate(format_of(path).scan(path, columns), start=1):
            if hash(row.id) not in repeated:
                continue
            place = f"row {number} of {path}"
            if row.id in places:
                raise DataError(
                    f"{columns.id!r} must be another one in each row: {row.id!r} is that of "
                    f"{places[row.id]} and of {place}"
                )
            places[row.id] = place
