"""Parallel corpora: lines of two tab-separated sides, optionally with a tag after them, plain or compressed."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from dragoman.errors import DataError

OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
MAX_BROKEN_SHARE = 0.01


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs, and the number of broken lines."""

    sources: list[str]
    targets: list[str]
    broken_lines: list[int]

    def __len__(self) -> int:
        return len(self.sources)

    def line(self, pair: int) -> int:
        """Give the number of the line that a pair was read from, both sides."""
        number = pair + 1
        for broken in self.broken_lines:
            number += broken <= number
        return number


def open_text(path: Path) -> IO[str]:
    """Open a text file, plain or compressed, as UTF-8, perhaps with a mark that says so (U+FEFF) at its beginning.

    Undecodable bytes become U+FFFD and break their line.
    """
    opener = OPENERS.get(path.suffix, open)
    return opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="\n")  # type: ignore[no-any-return, operator]


def broken_note(path: Path, broken: Sequence[int]) -> str:
    """Describe the skipped lines of a file by their numbers."""
    return f"{path}: {len(broken)} broken lines left out, at line {', '.join(map(str, broken[:10]))}"


class Row(NamedTuple):
    """A pair of a corpus; `tag` is its origin: the third column, or else the file name up to its first dot."""

    source: str
    target: str
    tag: str


def read_rows(path: Path, broken: list[int]) -> Iterator[Row]:
    """Yield the pairs of `source TAB target` or `source TAB target TAB tag` lines, one at a time.

    The first valid line decides the number of columns of the file. A line with another number of columns, with an empty
    column or with bytes that are not UTF-8 is skipped.

    Args:
        path: the path of the file.
        broken: the numbers of skipped lines are appended to it.

    Raises:
        DataError: the file cannot be read, is empty, or more than 1 % of its lines are broken.
    """
    columns, pairs = 0, 0
    name = path.name.partition(".")[0]
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):
                fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
                is_whole = len(fields) in (columns or 2, columns or 3) and all(fields) and "\ufffd" not in line
                if is_whole:
                    columns = len(fields)
                    pairs += 1
                    yield Row(fields[0], fields[1], fields[2] if columns > 2 else name)
                else:
                    broken.append(number)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise _unreadable(path, error) from error
    total = pairs + len(broken)
    if not total:
        raise DataError(f"{path}: is empty")
    if not pairs or len(broken) > max(1, MAX_BROKEN_SHARE * total):
        expected = "source<TAB>target<TAB>tag" if columns > 2 else "source<TAB>target"
        raise DataError(
            f"{path}: {len(broken)} of {total} lines are not '{expected}' in UTF-8, more than "
            f"{MAX_BROKEN_SHARE:.0%} allowed; first broken lines: {broken[:5]}"
        )


def read_corpus(path: Path) -> Corpus:
    """Read the pairs of a file, without their tags, as `read_rows` does.

    Raises:
        DataError: as `read_rows`.
    """
    corpus = Corpus([], [], [])
    for source, target, _ in read_rows(path, corpus.broken_lines):
        corpus.sources.append(source)
        corpus.targets.append(target)
    return corpus


def read_sentences(path: Path) -> Corpus:
    """Read `source TAB target` lines as `read_corpus` does, or lines with only a source, which have no targets.

    Raises:
        DataError: as `read_corpus`.
    """
    try:
        with open_text(path) as lines:
            sources = [line.strip() for line in lines if line.strip()]
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise _unreadable(path, error) from error
    if not sources or any("\t" in source for source in sources):
        return read_corpus(path)
    if broken := [number for number, source in enumerate(sources, 1) if "\ufffd" in source]:
        raise DataError(f"{path}: sentence {broken[0]} is not UTF-8")
    return Corpus(sources, [], [])


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}")
