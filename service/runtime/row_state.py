"""Ids and lengths of the rows of the slots' buffers, wherever these lie, and the row of each slot."""

import numpy as np


class RowState:
    """Ids and lengths of fixed capacity; the slots that hold a segment are the first ones.

    A row's valid parts are half-open intervals: own keys and values [0, length), memory [0, memory_length).

        ids, next_ids: int64 [rows]      lengths, memory_lengths: int32 [rows]      row_of: int64 [slots]
    """

    def __init__(self, slots: int, start_id: int) -> None:
        """Make rows without segments.

        Args:
            slots: how many, and rows as many.
            start_id: from which every translation begins.
        """
        self._start_id = start_id
        self.ids = np.full(slots, start_id, np.int64)
        self.next_ids = self.ids.copy()
        self.lengths = np.zeros(slots, np.int32)
        # One where there is no segment: attention over nothing is not a number.
        self.memory_lengths = np.ones(slots, np.int32)
        self.row_of = np.arange(slots)

    def begin(self, slot: int, source_tokens: int) -> int:
        """Begin a segment in a slot, with nothing decoded; gives its row."""
        row = int(self.row_of[slot])
        self.ids[row] = self._start_id
        self.lengths[row] = 0
        self.memory_lengths[row] = source_tokens
        return row

    def force(self, slot: int, token: int) -> None:
        """Let a slot go on from another token than the last one that is valid."""
        self.ids[self.row_of[slot]] = token

    def commit(self, slots: int) -> None:
        """Make a step of the first slots valid: the next ids are the ids now, and what was written counts."""
        rows = self.row_of[:slots]
        self.ids[rows] = self.next_ids[rows]
        self.lengths[rows] += 1

    def copy(self, source: int, target: int) -> None:
        """Let the row of a slot be as that of another."""
        source_row, target_row = self.row_of[source], self.row_of[target]
        for values in (self.ids, self.lengths, self.memory_lengths):
            values[target_row] = values[source_row]

    def swap(self, one: int, other: int) -> None:
        """Exchange the rows of two slots."""
        self.row_of[[one, other]] = self.row_of[[other, one]]

    def lengths_of(self, slots: int) -> tuple[list[int], list[int]]:
        """Count tokens in the cache and source tokens, of each of the first slots."""
        rows = self.row_of[:slots]
        return self.lengths[rows].tolist(), self.memory_lengths[rows].tolist()
