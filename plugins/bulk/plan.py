"""The plan of a job: which rows make which part of the output. The same input always gives the same plan."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.errors import DataError
from plugins.bulk.columns import Columns
from plugins.bulk.formats import format_of
from plugins.bulk.rows import Row
from plugins.bulk.unique import SeenIds

_PART_BYTES: Final = 4 * 2**20  # of text, where there are several rows


class Chunk(NamedTuple):
    """Some rows of a file, one behind the other: what one part of the output is made of. Of plain values only.

    Attributes:
        number: of the part, from 0.
        path: of the file.
        start: where the rows begin in it, see `Row`.
        end: where they end.
        rows: how many there are.
        size_bytes: of their texts, or somewhat more.
        file_bytes: how large the file was when the plan was made ...
        modified_ns: ... and when it was written last.
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
        """Give the file of the part."""
        return out / f"part-{self.number:08}{Path(self.path).suffix.lower()}"

    def check_unchanged(self) -> None:
        """Make sure that the file is the one that the plan was made of.

        Raises:
            DataError: it is not.
            OSError: it is gone.
        """
        status = Path(self.path).stat()
        if (status.st_size, status.st_mtime_ns) != (self.file_bytes, self.modified_ns):
            raise DataError(f"{self.path}: was changed while it was translated")


def planned(files: Sequence[Path], columns: Columns, part_rows: int) -> list[Chunk]:
    """Make the plan.

    Args:
        files: all of them are read once.
        columns: to read.
        part_rows: rows of a part, at most.

    Raises:
        DataError: a file cannot be used, or two rows have the same id.
        OSError: a file cannot be read.
    """
    seen = SeenIds()
    chunks: list[Chunk] = []
    for path in files:
        status = path.stat()
        for rows in _cut(seen.each(format_of(path).scan(path, columns)), part_rows):
            count, size_bytes, start, end = rows
            file = (status.st_size, status.st_mtime_ns)
            chunks.append(Chunk(len(chunks), str(path), start, end, count, size_bytes, *file))
    if repeated := seen.repeated():
        _refuse_repeated(files, columns, repeated)
    return chunks


class _Cut(NamedTuple):
    rows: int
    size_bytes: int
    start: int
    end: int


def _cut(rows: Iterable[Row], part_rows: int) -> Iterator[_Cut]:
    cut: _Cut | None = None
    for row in rows:
        if cut is not None and (cut.rows == part_rows or cut.size_bytes + row.size_bytes > _PART_BYTES):
            yield cut
            cut = None
        count, size_bytes, start = (0, 0, row.start) if cut is None else cut[:3]
        cut = _Cut(count + 1, size_bytes + row.size_bytes, start, row.end)
    if cut is not None:
        yield cut


def _refuse_repeated(files: Sequence[Path], columns: Columns, repeated: set[int]) -> None:
    """Name the first two rows of the same id, if their hashes are not the same by chance."""
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
