"""The decode batch in a device's memory: after a step, only the next ids are copied to the host.

The counterpart of `runtime.slots` and `runtime.host` for a GPU. It works on any device, also on a CPU, where it is
slower, since the host cannot use its own loads and stores.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import DTypeLike, NDArray

from dragoman.bundle import (
    ASKED_IDS,
    ASKED_LOG_PROBABILITIES,
    ATTENTION_SCORES,
    BEST_IDS,
    BEST_LOG_PROBABILITIES,
    COUNT,
    DECODER,
    ENCODER,
    IDS,
    LENGTHS,
    LOGITS,
    MEMORY,
    MEMORY_LENGTHS,
    NEXT_IDS,
    PADDING,
    PLACE,
    SEARCH,
    SLOT_ROWS,
    SOURCE_CAPACITY,
    SOURCE_ROWS,
    TARGET_CAPACITY,
    Bundle,
    Manifest,
    cache_names,
    memory_names,
    present_name,
    state_names,
)
from dragoman.errors import BundleError
from plugins.gpu.device_memory import Buffer, Copies, DeviceMemory
from plugins.gpu.sessions import DEVICE_LOCK, open_graph
from service.runtime.attention import attention
from service.runtime.binding import Tensor, bind, encoder_feeds
from service.runtime.host import RUN_SIZE
from service.runtime.interfaces import Candidates, RunSize
from service.runtime.output import SlotOutputs
from service.runtime.slots import KEY_VALUE_TYPES, LOGITS_TYPES, RowState

_NO_CAPTURE: Final = -1
# On a GPU, the default model's run of 512 tokens takes 1 ms, nearly all of it to launch about 150 kernels.
_GPU_RUN_SIZE: Final = RunSize(tokens=8192, cost=8192, ahead=128, ahead_of_several=32)


class DeviceEncoder:
    """Source ids to encoder memory that stays on the device; thread-safe."""

    def __init__(self, bundle: Bundle, device: str) -> None:
        """Load the encoder graph.

        Raises:
            BundleError: the graph cannot be loaded.
        """
        self.run_size = RUN_SIZE if device == "cpu" else _GPU_RUN_SIZE
        self._session = open_graph(bundle, ENCODER, device)
        self._copies = Copies(bundle, device)
        self._device = device
        self._pad_id = bundle.manifest.pad_id
        self._dtype = KEY_VALUE_TYPES[bundle.manifest.precision]

    def encode(self, sources: Sequence[Sequence[int]]) -> list[DeviceMemory]:
        """Run the encoder over a micro-batch of sources, none empty; returns the memory of each source."""
        with DEVICE_LOCK:
            binding = self._session.io_binding()
            for name, array in encoder_feeds(sources, self._pad_id).items():
                binding.bind_cpu_input(name, array)
            binding.bind_output(MEMORY, self._device)
            self._session.run_with_iobinding(binding)
            [memory] = binding.get_outputs()
        buffer = Buffer(memory, self._dtype, self._device)
        return [DeviceMemory(buffer, row, len(ids), self._copies) for row, ids in enumerate(sources)]

    def close(self) -> None:
        """Close the sessions; no run is possible afterwards."""
        with DEVICE_LOCK:
            del self._session
            self._copies.close()


class DeviceDecoder:
    """The decoder graph and the graphs that serve its buffers; thread-safe."""

    def __init__(self, bundle: Bundle, device: str) -> None:
        """Load the graphs.

        Raises:
            BundleError: a graph cannot be loaded; on a GPU also if it would copy to the host and back; or the bundle is
                of an older export whose graph places only one memory per run.
        """
        self.session = open_graph(bundle, DECODER, device)
        self.place = open_graph(bundle, PLACE, device)
        if SLOT_ROWS not in {value.name for value in self.place.get_inputs()}:
            raise BundleError(f"{bundle.path / PLACE}: is of an older dragoman export; export the model again")
        self.search = open_graph(bundle, SEARCH, device)
        self.copies = Copies(bundle, device)
        self.device = device
        self.cuda_graph_ids = itertools.count(1)  # onnxruntime reserves 0

    def new_step(self, manifest: Manifest, slots: int) -> tuple["DeviceSlots", "DeviceStep"]:
        """Reserve the buffers for `slots` slots, and bind the graph to them."""
        table = DeviceSlots(manifest, slots, self)
        return table, DeviceStep(self, table)

    def close(self) -> None:
        """Close the sessions, after all steps have been closed."""
        with DEVICE_LOCK:
            del self.session, self.place, self.search
            self.copies.close()


class DeviceSlots:
    """Buffers of fixed capacity in a device's memory, whose rows belong to slots.

    The host assigns rows to slots. So moving a slot costs nothing: only the assignment changes. Values beyond a row's
    lengths are ignored, as in `runtime.slots`; so are the results of rows without a segment that lie between others.

        caches, memory: by the decoder's name, each [slots, heads, capacity, head_dim]
        states: by the decoder's name, [slots, 1, d_model], twice; zeros for a row that begins
        ids: int64 [slots], twice: a step reads one, writes the other, and the commit swaps them
        lengths, memory_lengths: int32 [slots]
        logits: [slots, vocabulary_size]
        attention_scores: [slots, heads, 1, source capacity]
        rows: the ids and lengths intended for the device; the device has the same ids and memory lengths, unless stale
        rows_of: int64 [slots], the row of each slot
    """

    def __init__(self, manifest: Manifest, slots: int, decoder: DeviceDecoder) -> None:
        """Reserve the buffers, in the memory of the decoder's device."""
        self._decoder = decoder
        self.outputs: SlotOutputs | None = None  # in a device's memory all slots choose from the whole vocabulary
        self._alignment_heads = manifest.alignment.heads
        self.rows = RowState(slots, manifest.start_id)
        self.rows_of = np.arange(slots)
        self.target_capacity = np.array(manifest.target_capacity, np.int32)
        self.source_capacity = np.array(manifest.max_source_tokens, np.int32)
        dtype, of_logits = KEY_VALUE_TYPES[manifest.precision], LOGITS_TYPES[manifest.precision]

        def reserve(*shape: int, of: DTypeLike = dtype) -> Buffer:
            return Buffer.zeros((slots, *shape), of, decoder.device)

        with DEVICE_LOCK:
            cache_shape = manifest.heads, manifest.target_capacity, manifest.head_dim
            memory_shape = manifest.heads, manifest.max_source_tokens, manifest.head_dim
            self.caches = {name: reserve(*cache_shape) for name in cache_names(manifest.cached_layers)}
            self.memory = {name: reserve(*memory_shape) for name in memory_names(manifest.decoder_layers)}
            self._placed_in = {name: buffer.rows(0, slots) for name, buffer in self.memory.items()}
            self._placed_out = {present_name(name): tensor for name, tensor in self._placed_in.items()}
            names = state_names(manifest.state_layers)
            self.states = [{name: reserve(1, manifest.d_model, of=of_logits) for name in names} for _ in range(2)]
            self._zeros = Buffer.zeros((1, 1, manifest.d_model), of_logits, decoder.device)
            self.logits = reserve(manifest.vocabulary_size, of=of_logits)
            scores_shape = manifest.heads, 1, manifest.max_source_tokens
            self.attention_scores = reserve(*scores_shape, of=of_logits)
            self._ids = [reserve(of=np.int64), reserve(of=np.int64)]
            self._device_lengths = reserve(of=np.int32)
            self._device_memory_lengths = reserve(of=np.int32)
        self._arrived: dict[int, DeviceMemory] = {}  # memories not yet placed, by row
        self.turn = 0  # index of the ids and states that the next step reads
        self.divided = False  # a run of the current step has failed
        self._stale = True

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for target and source keys and values, and for states."""
        states = (buffer for half in self.states for buffer in half.values())
        return sum(buffer.nbytes for buffer in (*self.caches.values(), *self.memory.values(), *states))

    def row_of(self, slot: int) -> int:
        """Find the row of a slot."""
        return int(self.rows_of[slot])

    def first_rows(self, slots: int) -> int:
        """Count the rows up to the last row of the first slots."""
        return int(self.rows_of[:slots].max()) + 1

    def fill(self, slot: int, memory: DeviceMemory) -> None:
        """Begin a segment: its encoder memory will be placed in a row of the slot; later slots are free."""
        row, tokens = self._free_row(slot), memory.tensor.shape[1]
        if tokens > self.source_capacity:
            raise ValueError(f"a memory of {tokens} tokens in a slot of {self.source_capacity}")
        with DEVICE_LOCK:
            for state in self.states[self.turn].values():
                self._decoder.copies.copy(self._zeros.rows(0, 1), state.rows(row, 1))
        self._arrived[row] = memory
        self.rows.begin(row, tokens)
        self._stale = True

    def place(self) -> None:
        """Copy newly assigned memories into their rows, those of a micro-batch in one run."""
        if not self._arrived:
            return
        batches = defaultdict[Buffer, list[int]](list)
        for row, memory in self._arrived.items():
            batches[memory.buffer].append(row)
        for buffer, rows in batches.items():
            padding = np.array([0, 0, 0, 0, self.source_capacity - buffer.shape[1], 0], np.int64)
            of_batch = np.array([self._arrived[row].row for row in rows])
            of_slots = np.array(rows).reshape(-1, 1, 1, 1)
            inputs = {
                MEMORY: buffer.rows(0, buffer.shape[0]),
                SOURCE_ROWS: Tensor.of(of_batch),
                SLOT_ROWS: Tensor.of(of_slots),
                PADDING: Tensor.of(padding),
            }
            self._decoder.place.run_with_iobinding(
                bind(self._decoder.place, inputs | self._placed_in, self._placed_out)
            )
        self._arrived.clear()

    def force(self, slot: int, token: int) -> None:
        """Make a slot continue from a token other than its last valid one."""
        self.rows.ids[self.rows_of[slot]] = token
        self._stale = True

    def commit(self, slots: int) -> None:
        """Make a step of the first slots valid."""
        self.rows.commit(self.rows_of[:slots])
        self.turn = 1 - self.turn
        self._stale |= self.divided  # the runs of single rows left out rows without a segment
        self.divided = False

    def move(self, source: int, target: int) -> None:
        """Exchange the rows of two slots; the segment of the target slot has left."""
        self.rows_of[[source, target]] = self.rows_of[[target, source]]

    def fork(self, source: int, target: int) -> None:
        """Start a slot as a copy of another; later slots are free."""
        row = self._free_row(target)
        with DEVICE_LOCK:
            self.place()
        self._copy_row((*self._own_buffers, *self.memory.values()), self.row_of(source), row)

    def copy(self, source: int, target: int, first: int) -> None:
        """Make a slot a copy of another with the same memory; whole rows are copied, whatever `first` is."""
        self._copy_row(self._own_buffers, self.row_of(source), self.row_of(target))

    @property
    def _own_buffers(self) -> list[Buffer]:
        """The buffers of the target's own tokens that the next step reads."""
        return [*self.caches.values(), *self.states[self.turn].values()]

    def _free_row(self, slot: int) -> int:
        """Give a slot the lowest row of all free slots, so that a step has few rows."""
        self.move(slot, slot + int(self.rows_of[slot:].argmin()))
        return self.row_of(slot)

    def _copy_row(self, buffers: Iterable[Buffer], source: int, target: int) -> None:
        with DEVICE_LOCK:
            for buffer in buffers:
                self._decoder.copies.copy(buffer.rows(source, 1), buffer.rows(target, 1))
        self.rows.copy(source, target)
        self._stale = True

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give the logits from which the slot's next id was chosen, [vocabulary_size]."""
        return self._download(self.logits, slot)

    def attention_of(self, slot: int) -> NDArray[np.float32]:
        """Give the last run's attention to each token of the slot's source, [source tokens]."""
        tokens = self.rows.memory_lengths[self.row_of(slot)]
        return attention(self._download(self.attention_scores, slot)[:, 0, :tokens], self._alignment_heads)

    def _download(self, buffer: Buffer, slot: int) -> NDArray[np.floating]:
        """Copy the row of a slot to the host."""
        row = buffer.rows(self.row_of(slot), 1)
        values: NDArray[np.floating] = np.empty(row.shape[1:], row.dtype)
        with DEVICE_LOCK:
            self._decoder.copies.copy(row, Tensor.of(values))
        return values

    def upload(self) -> None:
        """Copy the host's changes since the last step to the device; ids chosen by a step are already there."""
        self.place()
        # A row whose segment left at its last position has no room for the ignored next token.
        self._device_lengths.value.update_inplace(np.minimum(self.rows.lengths, self.target_capacity - 1))
        if self._stale:
            self._ids[self.turn].value.update_inplace(self.rows.ids)
            self._device_memory_lengths.value.update_inplace(self.rows.memory_lengths)
            self._stale = False

    def download(self, slots: slice) -> NDArray[np.int64]:
        """Read the next ids of some slots after a run."""
        rows = self.rows_of[slots]
        self.rows.next_ids[rows] = self._ids[1 - self.turn].value.numpy()[rows]
        return self.rows.next_ids[rows]

    def rewind(self) -> None:
        """Undo the steps that ran without segments."""
        self.turn = 0
        self._stale = True

    def tensors(self, row: int, count: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Give the inputs and outputs of the decoder for some rows and the current turn; caches are both."""
        inputs = {
            IDS: self._ids[self.turn].rows(row, count),
            LENGTHS: self._device_lengths.rows(row, count),
            MEMORY_LENGTHS: self._device_memory_lengths.rows(row, count),
            TARGET_CAPACITY: Tensor.of(self.target_capacity),
            SOURCE_CAPACITY: Tensor.of(self.source_capacity),
        }
        outputs = {
            NEXT_IDS: self._ids[1 - self.turn].rows(row, count),
            LOGITS: self.logits.rows(row, count),
            ATTENTION_SCORES: self.attention_scores.rows(row, count),
        }
        for name, buffer in (self.caches | self.memory).items():
            inputs[name] = outputs[present_name(name)] = buffer.rows(row, count)
        for name, buffer in self.states[self.turn].items():
            inputs[name] = buffer.rows(row, count)
            outputs[present_name(name)] = self.states[1 - self.turn][name].rows(row, count)
        return inputs, outputs


class DeviceStep:
    """The decoder graph bound to the buffers of one slot table.

    The rows of a step are rounded up to 1, 2, 4, ..., so that there are few bindings: for each, a GPU records its work
    once, and repeats the recording (a CUDA graph).
    """

    def __init__(self, decoder: DeviceDecoder, slots: DeviceSlots) -> None:
        self._decoder = decoder
        self._slots = slots
        self._outputs = {output.name for output in decoder.session.get_outputs()}
        self._bindings: dict[tuple[int, int], tuple[onnxruntime.IOBinding, onnxruntime.RunOptions]] = {}
        self._most = slots.logits.shape[0]

    def prepare(self) -> None:
        """Run once for each number of rows and both turns: a GPU's recording belongs to the thread that runs it."""
        with DEVICE_LOCK:
            for turn in range(2):
                self._slots.turn = turn
                self._slots.upload()
                for rows in sorted({self._bucket(rows) for rows in range(1, self._most + 1)}):
                    self._run_first(rows)
            self._slots.rewind()

    def close(self) -> None:
        """Free the recordings."""
        with DEVICE_LOCK:
            self._bindings.clear()

    def run(self, rows: int, start: int = 0) -> NDArray[np.int64]:
        """Decode one token of the slots from `start` to `start + rows`: keys and values in place, lengths stay.

        After a failed run, the slots of the step run one by one until the commit: rows of other slots may lie between
        them.

        Returns:
            The next ids, [rows].
        """
        slots = slice(start, start + rows)
        with DEVICE_LOCK:
            self._slots.upload()
            if self._slots.divided:
                for slot in range(start, start + rows):
                    self._run_row(self._slots.row_of(slot))
            else:
                self._slots.divided = True
                self._run_first(self._slots.first_rows(start + rows))
                self._slots.divided = False
            return self._slots.download(slots)

    def best(self, start: int, count: int, asked: NDArray[np.int64]) -> Candidates:
        """Find the best tokens of slots from the logits of the last run."""
        rows = self._slots.rows_of[start : start + len(asked)]
        logits = self._slots.logits.rows(0, int(rows.max()) + 1)
        asked_of_rows = np.zeros((logits.shape[0], asked.shape[1]), np.int64)
        asked_of_rows[rows] = asked
        size = np.array([min(count, logits.shape[1])])
        search = self._decoder.search
        binding = bind(search, {LOGITS: logits, COUNT: Tensor.of(size)}, {})
        binding.bind_cpu_input(ASKED_IDS, asked_of_rows)
        for name in (BEST_IDS, BEST_LOG_PROBABILITIES, ASKED_LOG_PROBABILITIES):
            binding.bind_output(name, "cpu")
        with DEVICE_LOCK:
            search.run_with_iobinding(binding)
            return Candidates(*(values[rows] for values in binding.copy_outputs_to_cpu()))

    def _run_first(self, rows: int) -> None:
        key = self._slots.turn, self._bucket(rows)
        if key not in self._bindings:
            self._bindings[key] = self._bind(0, self._bucket(rows)), _options(next(self._decoder.cuda_graph_ids))
        try:
            self._decoder.session.run_with_iobinding(*self._bindings[key])
        except Exception:
            # onnxruntime keeps an incomplete recording, and would repeat it under the same id.
            del self._bindings[key]
            raise

    def _run_row(self, row: int) -> None:
        self._decoder.session.run_with_iobinding(self._bind(row, 1), _options(_NO_CAPTURE))

    def _bucket(self, rows: int) -> int:
        return min(1 << (rows - 1).bit_length(), self._most)

    def _bind(self, row: int, count: int) -> onnxruntime.IOBinding:
        inputs, outputs = self._slots.tensors(row, count)
        return bind(self._decoder.session, inputs, {name: outputs[name] for name in self._outputs})


def _options(cuda_graph_id: int) -> onnxruntime.RunOptions:
    """Set the CUDA graph id of a binding for a GPU; other devices ignore it."""
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(cuda_graph_id))
    return options
