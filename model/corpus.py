"""Parallel corpora: lines of two sides with a tab between, plain or compressed."""

import bz2
import gzip
import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dragoman.errors import DataError

OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
MAX_BROKEN_SHARE = 0.01


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs and how many lines were not one."""

    sources: list[str]
    targets: list[str]
    broken_lines: list[int]

    def __len__(self) -> int:
        return len(self.sources)


def open_text(path: Path) -> IO[str]:
    """Open a text file, plain or compressed, as UTF-8; undecodable bytes become U+FFFD and break their line."""
    opener = OPENERS.get(path.suffix, open)
    return opener(path, "rt", encoding="utf-8", errors="replace", newline="\n")  # type: ignore[no-any-return, operator]


def read_corpus(path: Path) -> Corpus:
    """Read `source TAB target` lines.

    A line without exactly one tab, with an empty side or with bytes that are not UTF-8 is counted and skipped.

    Raises:
        DataError: the file cannot be read, is empty, or more than 1 % of its lines are broken.
    """
    sources, targets, broken = [], [], []
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):
                fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
                if len(fields) == 2 and all(fields) and "\ufffd" not in line:
                    sources.append(fields[0])
                    targets.append(fields[1])
                else:
                    broken.append(number)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise _unreadable(path, error) from error
    total = len(sources) + len(broken)
    if not total:
        raise DataError(f"{path}: is empty")
    if not sources or len(broken) > max(1, MAX_BROKEN_SHARE * total):
        raise DataError(
            f"{path}: {len(broken)} of {total} lines are not 'source<TAB>target' in UTF-8, more than "
            f"{MAX_BROKEN_SHARE:.0%} allowed; first broken lines: {broken[:5]}"
        )
    return Corpus(sources, targets, broken)


def read_sentences(path: Path) -> Corpus:
    """Read `source TAB target` lines as `read_corpus` does, or lines of a source each, which have no targets.

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
