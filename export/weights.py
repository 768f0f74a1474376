"""The weights of a bundle's graphs in one file; each is stored once, however many graphs and layers read it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import WEIGHTS

# Alignment of constants, for fast reads by the processor.
_ALIGNMENT: Final = 64
# Bytes of a constant converted at a time: a constant of 256,000 rows fills a gigabyte.
_CHUNK_BYTES: Final = 2**24


class Place(NamedTuple):
    """The place of a constant in the file, in bytes."""

    offset: int
    size: int


class WeightsFile:
    """The file `WEIGHTS` of a bundle under construction."""

    def __init__(self, folder: Path) -> None:
        self._stream = (folder / WEIGHTS).open("wb")
        self._places: dict[bytes, Place] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def place(self, array: NDArray[np.generic], dtype: np.dtype[Any]) -> Place:
        """Find the place of an array; it is written if the file does not contain it.

        Args:
            array: an array of any type and order.
            dtype: the type to write.
        """
        end = self._stream.tell()
        self._stream.write(bytes(-end % _ALIGNMENT))
        offset, hashed = self._stream.tell(), hashlib.sha256()
        for chunk in _chunks(array, dtype):
            hashed.update(chunk)
            self._stream.write(chunk)
        place = self._places.setdefault(hashed.digest(), Place(offset, self._stream.tell() - offset))
        if place.offset != offset:
            self._stream.seek(end)
            self._stream.truncate()
        return place

    def flush(self) -> None:
        """Flush, so that others can read the written data."""
        self._stream.flush()


def _chunks(array: NDArray[np.generic], dtype: np.dtype[Any]) -> Iterator[memoryview]:
    rows = max(1, _CHUNK_BYTES // max(1, array[:1].size * dtype.itemsize))
    for start in range(0, len(array), rows):
        part = np.ascontiguousarray(array[start : start + rows], dtype)
        yield part.reshape(-1).view(np.uint8).data
