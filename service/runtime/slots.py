"""The decode batch in host memory: each slot owns its row of every buffer, and a step changes the rows in place."""

import math
import mmap
from collections.abc import Mapping
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dragoman.bundle import (
    ASKED_IDS,
    ASKED_LOG_PROBABILITIES,
    ATTENTION_SCORES,
    BEST_IDS,
    BEST_LOG_PROBABILITIES,
    COUNT,
    IDS,
    LENGTHS,
    LOGITS,
    MEMORY_LENGTHS,
    NEXT_IDS,
    SOURCE_CAPACITY,
    STATES,
    TARGET_CAPACITY,
    Manifest,
    Precision,
    cache_names,
    memory_names,
    present_name,
    state_names,
)
from service.runtime.attention import attention
from service.runtime.binding import Tensor, bind
from service.runtime.interfaces import Candidates
from service.runtime.output import OutputLayer, SlotOutputs

# Types of keys and values, by the precision of the products.
KEY_VALUE_TYPES: Final[Mapping[Precision, type[np.generic]]] = {"fp32": np.float32, "int8": np.int8, "fp16": np.float16}
LOGITS_TYPES: Final[Mapping[Precision, type[np.floating]]] = {
    "fp32": np.float32,
    "int8": np.float32,
    "fp16": np.float16,
}


# Segments between two attempts to move the rows closer together: that costs copies, and bindings made again.
_SEGMENTS_OF_A_LAYOUT: Final = 1024


class RowState:
    """Ids and lengths of fixed capacity.

    A row's valid parts are half-open intervals: own keys and values [0, length), memory [0, memory_length).

        ids, next_ids: int64 [rows]      lengths, memory_lengths: int32 [rows]
    """

    def __init__(self, rows: int, start_id: int) -> None:
        """Make rows without segments."""
        self._start_id = start_id
        self.ids = np.full(rows, start_id, np.int64)
        self.next_ids = self.ids.copy()
        self.lengths = np.zeros(rows, np.int32)
        # 1 where there is no segment: attention over 0 tokens gives NaN.
        self.memory_lengths = np.ones(rows, np.int32)

    def begin(self, row: int, source_tokens: int) -> None:
        """Begin a segment in a row, with nothing decoded."""
        self.ids[row] = self._start_id
        self.lengths[row] = 0
        self.memory_lengths[row] = source_tokens

    def commit(self, rows: slice | NDArray[np.int64]) -> None:
        """Make a step of some rows valid: the next ids become the ids, and the lengths grow by 1."""
        self.ids[rows] = self.next_ids[rows]
        self.lengths[rows] += 1

    def copy(self, source: int, target: int) -> None:
        """Copy the ids and lengths of one row to another."""
        for values in (self.ids, self.lengths, self.memory_lengths):
            values[target] = values[source]


class SlotTable:
    """Reserved buffers whose first rows are the active slots: slot n has row n.

    Positions beyond the lengths of a row are never read, so no buffer is ever cleared. A capacity is what the longest
    rows needed lately, not what the model allows: rows that lie close together are read in half the time where large
    weights push keys and values out of the processor's cache.

        layout: number of changes of the capacities
        rows: ids and lengths of each row
        caches: [cached_layers, key and value, slots, heads, target capacity, head_dim]
        memory: [decoder_layers, key and value, slots, heads, source capacity, head_dim]
        states: [2, state_layers, slots, 1, d_model]: a step reads one half, writes the other, and the commit swaps them
        logits: [slots, vocabulary_size]
        attention_scores: [slots, heads, 1, source capacity]
        outputs: the candidates of each row and the output layer for them; None without a shortlist
    """

    def __init__(self, manifest: Manifest, slots: int, output: OutputLayer | None = None) -> None:
        """Reserve the buffers. Memory is taken page by page at the first write: a slot that was never used costs none.

        Raises:
            MemoryError: there is no room for the buffers.
        """
        dtype = KEY_VALUE_TYPES[manifest.precision]
        rows = slots, manifest.heads, manifest.head_dim
        self._memory = _KeyValues(manifest.decoder_layers, rows, manifest.max_source_tokens, dtype)
        self._caches = _KeyValues(manifest.cached_layers, rows, manifest.target_capacity, dtype)
        state_shape = 2, manifest.state_layers, slots, 1, manifest.d_model
        self.states: NDArray[np.floating] = np.zeros(state_shape, LOGITS_TYPES[manifest.precision])
        self.turn = 0  # the half of the states that the next step reads
        self._last_turn = min(1, manifest.state_layers)
        self.rows = RowState(slots, manifest.start_id)
        self.logits: NDArray[np.floating] = np.zeros(
            (slots, manifest.vocabulary_size), LOGITS_TYPES[manifest.precision]
        )
        self.outputs = None if output is None else SlotOutputs(output, self.rows.next_ids, self.logits)
        self._alignment_heads = manifest.alignment.heads
        self._scores: NDArray[np.floating] = np.zeros(
            slots * manifest.heads * manifest.max_source_tokens, LOGITS_TYPES[manifest.precision]
        )
        self.source_capacity, self.target_capacity = np.array(0, np.int32), np.array(0, np.int32)
        self.layout = 0
        self._filled = 0  # segments so far
        self._longest = 0  # no active slot has more own keys
        self._lay_out(_source_positions(0), _target_positions(0), 0)

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for the slots' own keys and values, for their encoder memories and for states."""
        return self._caches.reserved.nbytes + self._memory.reserved.nbytes + self.states.nbytes

    def fill(self, slot: int, memory: NDArray[np.generic]) -> None:
        """Begin a segment: copy its memory [source, decoder_layers * 2 * heads * head_dim] into the slot's row.

        The slots behind it are free.
        """
        length = memory.shape[0]
        self._filled += 1
        if self._filled % _SEGMENTS_OF_A_LAYOUT == 0:
            self._longest = int(self.rows.lengths[:slot].max(initial=0))
            longest_source = int(self.rows.memory_lengths[:slot].max(initial=length))
            self._lay_out(_source_positions(longest_source), _target_positions(self._longest), slot)
        elif length > self.memory.shape[4]:
            self._lay_out(_source_positions(length), self.caches.shape[4], slot)
        layers, kinds, _, heads, _, head_dim = self.memory.shape
        parts = memory.reshape(length, layers, kinds, heads, head_dim)
        self.memory[:, :, slot, :, :length] = parts.transpose(1, 2, 3, 0, 4)
        self.states[self.turn, :, slot] = 0
        self.rows.begin(slot, length)

    def force(self, slot: int, token: int) -> None:
        """Make a slot continue from `token` instead of its last valid token."""
        self.rows.ids[slot] = token

    def commit(self, slots: int) -> None:
        """Make the last step valid in the first `slots` slots."""
        self.rows.commit(slice(slots))
        self.turn = self._last_turn - self.turn
        self._longest += 1
        if self._longest >= self.caches.shape[4]:
            self._longest = int(self.rows.lengths[:slots].max(initial=0))
            if self._longest >= self.caches.shape[4]:
                self._lay_out(self.memory.shape[4], _target_positions(self._longest), slots)

    def move(self, source: int, target: int) -> None:
        """Copy the valid part of one row over another."""
        self.states[self.turn, :, target] = self.states[self.turn, :, source]
        length, memory_length = self.rows.lengths[source], self.rows.memory_lengths[source]
        self.caches[:, :, target, :, :length] = self.caches[:, :, source, :, :length]
        self.memory[:, :, target, :, :memory_length] = self.memory[:, :, source, :, :memory_length]
        if self.outputs is not None:
            self.outputs.move(source, target)
        self.rows.copy(source, target)

    def fork(self, source: int, target: int) -> None:
        """Begin a slot as a copy of another."""
        self.move(source, target)

    def copy(self, source: int, target: int, first: int) -> None:
        """Make a slot a copy of another with the same encoder memory; positions before `first` are equal already."""
        length = self.rows.lengths[source]
        self.caches[:, :, target, :, first:length] = self.caches[:, :, source, :, first:length]
        self.states[self.turn, :, target] = self.states[self.turn, :, source]
        self.rows.copy(source, target)

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give the logits of the slot's next id, a view of [vocabulary_size]."""
        if self.outputs is not None:
            self.outputs.spread([slot])
        logits: NDArray[np.floating] = self.logits[slot]
        return logits

    def attention_of(self, slot: int) -> NDArray[np.float32]:
        """Give the attention of the last run over the slot's source, [source tokens]."""
        tokens = self.rows.memory_lengths[slot]
        return attention(self.attention_scores[slot, :, 0, :tokens], self._alignment_heads)

    def _lay_out(self, source: int, target: int, slots: int) -> None:
        """Change the capacities, to at most the model's limits; the first `slots` rows keep what fits."""
        self.memory, self.caches = self._memory.lay_out(source, slots), self._caches.lay_out(target, slots)
        slots, heads, source = self.memory.shape[2:5]
        self.attention_scores: NDArray[np.floating] = self._scores[: slots * heads * source].reshape(
            slots, heads, 1, source
        )
        capacities = source, self.caches.shape[4]
        if capacities != (int(self.source_capacity), int(self.target_capacity)):
            self.source_capacity[...], self.target_capacity[...] = capacities
            self.layout += 1


class DecoderStep:
    """The decoder graph bound to the rows of one slot table."""

    def __init__(
        self, session: onnxruntime.InferenceSession, search: onnxruntime.InferenceSession, slots: SlotTable
    ) -> None:
        """Bind the graph of `session`; the graph of `search` finds the best tokens by its logits."""
        self._session = session
        self._search = search
        self._slots = slots
        self._outputs = {output.name for output in session.get_outputs()}
        self._bindings: dict[tuple[int, int, int], onnxruntime.IOBinding] = {}
        self._layout = slots.layout  # that of the bindings

    def prepare(self) -> None:
        """Do nothing: runs on a CPU need no preparation."""

    def close(self) -> None:
        """Forget the bindings."""
        self._bindings.clear()

    def run(self, rows: int, start: int = 0) -> NDArray[np.int64]:
        """Decode one token of the slots from `start` to `start + rows`; changes keys and values, but no lengths.

        Returns:
            The next ids, a view of [rows].
        """
        if self._layout != self._slots.layout:
            self._bindings.clear()
            self._layout = self._slots.layout
        key = self._slots.turn, start, rows
        binding = self._bindings.get(key)
        if binding is None:
            binding = self._bindings[key] = self._bind(slice(start, start + rows))
        self._session.run_with_iobinding(binding)
        if self._slots.outputs is not None:
            self._slots.outputs.run(slice(start, start + rows))
        return self._slots.rows.next_ids[start : start + rows]

    def best(self, start: int, count: int, asked: NDArray[np.int64]) -> Candidates:
        """Find the best tokens of slots, by the logits of the last run."""
        if self._slots.outputs is not None:
            self._slots.outputs.spread(range(start, start + len(asked)))
        logits = self._slots.logits[start : start + len(asked)]
        feeds = {LOGITS: logits, COUNT: np.array([min(count, logits.shape[1])]), ASKED_IDS: asked}
        return Candidates(*self._search.run([BEST_IDS, BEST_LOG_PROBABILITIES, ASKED_LOG_PROBABILITIES], feeds))

    def _bind(self, rows: slice) -> onnxruntime.IOBinding:
        """Bind some rows of every buffer, for the current turn; caches are input and output at once."""
        slots, state = self._slots, self._slots.rows
        inputs: dict[str, NDArray[np.generic]] = {
            IDS: state.ids[rows],
            LENGTHS: state.lengths[rows],
            MEMORY_LENGTHS: state.memory_lengths[rows],
            TARGET_CAPACITY: slots.target_capacity,
            SOURCE_CAPACITY: slots.source_capacity,
        }
        outputs: dict[str, NDArray[np.generic]] = {ATTENTION_SCORES: slots.attention_scores[rows]}
        if slots.outputs is None:
            outputs |= {NEXT_IDS: state.next_ids[rows], LOGITS: slots.logits[rows]}
        else:
            outputs[STATES] = slots.outputs.states[rows]
        caches, memories = (each.reshape(-1, *each.shape[2:]) for each in (slots.caches, slots.memory))
        for name, cache in zip(cache_names(len(slots.caches)), caches, strict=True):
            inputs[name] = outputs[present_name(name)] = cache[rows]
        for layer, name in enumerate(state_names(slots.states.shape[1])):
            inputs[name] = slots.states[slots.turn, layer, rows]
            outputs[present_name(name)] = slots.states[1 - slots.turn, layer, rows]
        for name, memory in zip(memory_names(len(slots.memory)), memories, strict=True):
            inputs[name] = memory[rows]
            if present_name(name) in self._outputs:
                outputs[present_name(name)] = memory[rows]
        return bind(
            self._session,
            {name: Tensor.of(array) for name, array in inputs.items()},
            {name: Tensor.of(array) for name, array in outputs.items()},
        )


class _KeyValues:
    """The keys and values of all slots, in a buffer of a fixed size.

    Attributes:
        reserved: [layers, key and value, elements of all rows at the largest capacity].
    """

    def __init__(self, layers: int, rows: tuple[int, int, int], limit: int, dtype: type[np.generic]) -> None:
        """Reserve the buffer for rows of up to `limit` positions; `rows` are slots, heads, and the size of a head."""
        self.reserved = _reserve((layers, 2, math.prod(rows) * limit), dtype)
        self._rows, self._limit = rows, limit
        self._values = self._view(0)

    def lay_out(self, capacity: int, slots: int) -> NDArray[np.generic]:
        """Change the capacity, to at most the limit; the first `slots` rows keep what fits.

        Returns:
            A view, [layers, key and value, slots, heads, capacity, size of a head].
        """
        capacity = min(capacity, self._limit)
        if capacity != self._values.shape[4]:
            before, self._values = self._values, self._view(capacity)
            for old, new in zip(before, self._values, strict=True):  # layer by layer: the copy stays small
                kept = old[:, :slots, :, :capacity].copy()
                new[:, :slots, :, : kept.shape[3]] = kept
        return self._values

    def _view(self, capacity: int) -> NDArray[np.generic]:
        slots, heads, width = self._rows
        rows = self.reserved[..., : math.prod(self._rows) * capacity]
        return rows.reshape(*rows.shape[:2], slots, heads, capacity, width)


def _source_positions(longest: int) -> int:
    """Give the capacity for sources of that length, in steps of 4."""
    return max(4, -(-longest // 4) * 4)


def _target_positions(longest: int) -> int:
    """Give the capacity for rows that grow, longer than the longest by an eighth at least, in steps of 8."""
    return (longest + longest // 8 + 8) // 8 * 8


def _reserve(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[np.generic]:
    """Reserve zeros that take memory by small pages: a huge page of 2 MiB would hold rows that are never written."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not size or not hasattr(mmap, "MADV_NOHUGEPAGE"):  # not on Linux
        return np.zeros(shape, dtype)
    try:
        pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {size} bytes") from error
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(shape)
