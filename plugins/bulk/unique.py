"""A check that all ids are different, in 8 bytes per id."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from plugins.bulk.rows import Row

_HASHES: Final = "q"


class SeenIds:
    """The hashes of ids."""

    def __init__(self) -> None:
        self._hashes = array(_HASHES)

    def each(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, and record their ids."""
        for row in rows:
            self._hashes.append(hash(row.id))
            yield row

    def repeated(self) -> set[int]:
        """Give the hashes that occurred more than once."""
        hashes = np.sort(np.frombuffer(self._hashes, _HASHES))
        return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
