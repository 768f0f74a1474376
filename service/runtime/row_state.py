"""Ids and lengths of the rows of the slots' buffers, wherever these lie."""

import numpy as np
from numpy.typing import NDArray


class RowState:
    """Ids and lengths of fixed capacity.

    A row's valid parts are half-open intervals: own keys and values [0, length), memory [0, memory_length).

        ids, next_ids: int64 [rows]      lengths, memory_lengths: int32 [rows]
    """

    def __init__(self, rows: int, start_id: int) -> None:
        """Make rows without segments.

        Args:
            rows: how many.
            start_id: from which every translation begins.
        """
        self._start_id = start_id
        self.ids = np.full(rows, start_id, np.int64)
        self.next_ids = self.ids.copy()
        self.lengths = np.zeros(rows, np.int32)
        # One where there is no segment: attention over nothing is not a number.
        self.memory_lengths = np.ones(rows, np.int32)

    def begin(self, row: int, source_tokens: int) -> None:
        """Begin a segment in a row, with nothing decoded."""
        self.ids[row] = self._start_id
        self.lengths[row] = 0
        self.memory_lengths[row] = source_tokens

    def commit(self, rows: slice | NDArray[np.int64]) -> None:
        """Make a step of some rows valid: the next ids are the ids now, and what was written counts."""
        self.ids[rows] = self.next_ids[rows]
        self.lengths[rows] += 1

    def copy(self, source: int, target: int) -> None:
        """Let a row be as another."""
        for values in (self.ids, self.lengths, self.memory_lengths):
            values[target] = values[source]

    def lengths_of(self, rows: slice | NDArray[np.int64]) -> tuple[list[int], list[int]]:
        """Count tokens in the cache and source tokens, of each of some rows."""
        return self.lengths[rows].tolist(), self.memory_lengths[rows].tolist()
