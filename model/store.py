"""A corpus on disk, read pair by pair: memory holds only the start of each pair, a few bytes per pair."""

import json
import os
import weakref
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import sha256
from dragoman.errors import DataError
from model.corpus import broken_note, read_rows
from model.filtering import fault
from model.replacing import replacing

_TEXT: Final = "text.tsv"
_OFFSETS: Final = "offsets.npy"
_TAGS: Final = "tags.npy"
_RECORD: Final = "corpus.json"


class Store:
    """A folder with the pairs of some files as plain text, and records about them.

    Attributes:
        record: `files`, each with its name, hash and counts, and `tags`.
        tag_of: uint32 [pairs], the index of each pair's tag.
    """

    def __init__(self, folder: Path) -> None:
        self._text = os.open(folder / _TEXT, os.O_RDONLY)
        weakref.finalize(self, os.close, self._text)
        self._offsets: NDArray[np.int64] = np.load(folder / _OFFSETS)
        self.tag_of: NDArray[np.uint32] = np.load(folder / _TAGS)
        self.record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))

    def __len__(self) -> int:
        return len(self.tag_of)

    def pair(self, row: int) -> tuple[str, str]:
        """Read source and target of a pair."""
        start, stop = int(self._offsets[row]), int(self._offsets[row + 1])
        source, _, target = os.pread(self._text, stop - start - 1, start).decode().partition("\t")
        return source, target


def store(files: Sequence[Path], folder: Path, *, filters: bool) -> Store:
    """Write the pairs of some files into a folder, or use the existing folder.

    Args:
        files: files of pairs, as `read_rows` reads them.
        folder: the folder; it appears complete or not at all.
        filters: whether pairs with a fault are left out.

    Raises:
        DataError: a file is unusable, no pair is left, or the folder belongs to other files.
    """
    if not folder.exists():
        with replacing(folder) as partial:
            _write(files, partial, filters=filters)
        return Store(folder)
    found = Store(folder)
    before = [(each["file"], each["sha256"]) for each in found.record["files"]]
    for file in (now := [(file.name, sha256(file)) for file in files]):
        if file not in before:
            raise DataError(f"{file[0]}: is not what the run began with; give the same --train again")
    if now != before:
        raise DataError(f"the run began with {', '.join(name for name, _ in before)}; give the same --train again")
    return found


def is_store(folder: Path) -> bool:
    """Tell whether a folder is what `store` made, and no other of that name."""
    return (folder / _RECORD).is_file()


def _write(files: Sequence[Path], folder: Path, *, filters: bool) -> None:
    tags: dict[str, int] = {}
    offsets, tag_of = array("q", [0]), array("I")
    records = []
    with (folder / _TEXT).open("wb") as text:
        for file in files:
            broken: list[int] = []
            faults: Counter[str] = Counter()
            first = len(tag_of)
            for source, target, tag in read_rows(file, broken):
                if filters and (wrong := fault(source, target)):
                    faults[wrong] += 1
                    continue
                offsets.append(offsets[-1] + text.write(f"{source}\t{target}\n".encode()))
                tag_of.append(tags.setdefault(tag, len(tags)))
            if broken:
                print(broken_note(file, broken))
            if faults:
                said = ", ".join(f"{number:,} for {name}" for name, number in sorted(faults.items()))
                print(f"{file}: {faults.total():,} pairs filtered: {said}")
            records.append(
                {"file": file.name, "sha256": sha256(file), "pairs": len(tag_of) - first, "broken_lines": len(broken)}
                | ({"filtered": dict(sorted(faults.items()))} if filters else {})
            )
    if not tag_of:
        raise DataError(f"{', '.join(map(str, files))}: no pair passes --filter")
    np.save(folder / _OFFSETS, np.frombuffer(offsets, dtype=np.int64))
    np.save(folder / _TAGS, np.frombuffer(tag_of, dtype=np.uint32))
    record = {"files": records, "tags": list(tags)}
    (folder / _RECORD).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
