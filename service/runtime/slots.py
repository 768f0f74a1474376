"""The decode batch in host memory: each slot owns its row of every buffer."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Manifest, Precision

# Of keys and values, by the precision of the products.
KEY_VALUE_TYPES: Final[Mapping[Precision, type[np.generic]]] = {"fp32": np.float32, "int8": np.int8, "fp16": np.float16}
LOGITS_TYPES: Final[Mapping[Precision, type[np.floating]]] = {
    "fp32": np.float32,
    "int8": np.float32,
    "fp16": np.float16,
}


class SlotTable:
    """Buffers of fixed capacity whose first rows are the active slots.

    A row's valid parts are half-open intervals: own keys and values [0, length), memory [0, memory_length).
    What lies beyond is never read, so nothing is ever cleared.

        caches, memory: [decoder_layers, key and value, slots, heads, capacity, head_dim]
        ids, next_ids: int64 [slots]      lengths, memory_lengths: int32 [slots]
        logits: [slots, vocabulary_size]
    """

    def __init__(self, manifest: Manifest, slots: int) -> None:
        """Reserve the buffers. Memory is taken page by page as it is written: a slot that nobody used costs nothing."""
        dtype = KEY_VALUE_TYPES[manifest.precision]
        outer = (manifest.decoder_layers, 2, slots, manifest.heads)
        self.caches = np.zeros((*outer, manifest.max_target_tokens, manifest.head_dim), dtype)
        self.memory = np.zeros((*outer, manifest.max_source_tokens, manifest.head_dim), dtype)
        self.ids = np.zeros(slots, np.int64)
        self.next_ids = np.zeros(slots, np.int64)
        self.logits: NDArray[np.floating] = np.zeros(
            (slots, manifest.vocabulary_size), LOGITS_TYPES[manifest.precision]
        )
        self.lengths = np.zeros(slots, np.int32)
        self.memory_lengths = np.zeros(slots, np.int32)
        self.target_capacity = np.array(manifest.max_target_tokens, np.int32)
        self.source_capacity = np.array(manifest.max_source_tokens, np.int32)
        self._start_id = manifest.start_id

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for keys and values, own ones and the sources'."""
        return self.caches.nbytes + self.memory.nbytes

    def fill(self, slot: int, memory: NDArray[np.generic]) -> None:
        """Begin a segment: its encoder memory [source, decoder_layers * 2 * d_model] into the slot's row."""
        layers, kinds, _, heads, _, head_dim = self.memory.shape
        length = memory.shape[0]
        parts = memory.reshape(length, layers, kinds, heads, head_dim)
        self.memory[:, :, slot, :, :length] = parts.transpose(1, 2, 3, 0, 4)
        self.memory_lengths[slot] = length
        self.lengths[slot] = 0
        self.ids[slot] = self._start_id

    def advance(self, rows: int) -> None:
        """Commit a step of the first `rows` slots: what it wrote becomes valid."""
        self.ids[:rows] = self.next_ids[:rows]
        self.lengths[:rows] += 1

    def move(self, source: int, target: int) -> None:
        """Copy what is valid of one row over another."""
        length, memory_length = self.lengths[source], self.memory_lengths[source]
        self.caches[:, :, target, :, :length] = self.caches[:, :, source, :, :length]
        self.memory[:, :, target, :, :memory_length] = self.memory[:, :, source, :, :memory_length]
        for row in (self.ids, self.lengths, self.memory_lengths):
            row[target] = row[source]

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """What the slot's next id was chosen from, a view of [vocabulary_size]."""
        logits: NDArray[np.floating] = self.logits[slot]
        return logits
