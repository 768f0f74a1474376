"""The encoder and the decoder on buffers in host memory."""

from collections.abc import Sequence
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
    DECODER,
    ENCODER,
    IDS,
    LENGTHS,
    LOGITS,
    MEMORY,
    MEMORY_LENGTHS,
    NEXT_IDS,
    SEARCH,
    SOURCE_CAPACITY,
    STATES,
    STATES_DECODER,
    TARGET_CAPACITY,
    Bundle,
    Manifest,
    cache_names,
    memory_names,
    present_name,
    state_names,
)
from service.runtime.binding import Tensor, bind, encoder_feeds
from service.runtime.interfaces import Candidates, RunSize
from service.runtime.output import OutputLayer
from service.runtime.sessions import open_graph
from service.runtime.slots import SlotTable

# Enough tokens to use a core well, and while it runs those who decode wait. Of the default model a run takes 80
# microseconds beside the 19 of each token; it reads all weights, and drives the decoder's out of the core's cache.
RUN_SIZE: Final = RunSize(tokens=512, cost=4, ahead=32, ahead_of_several=8)


class EncoderSession:
    """Source ids to encoder memory; thread-safe."""

    run_size = RUN_SIZE

    def __init__(self, bundle: Bundle, *, run_threads: int = 1, packed: bool = True) -> None:
        """Load the encoder graph; the arguments are those of `open_session`.

        Raises:
            BundleError: it cannot be loaded.
        """
        self.session = open_graph(bundle, ENCODER, run_threads=run_threads, packed=packed)
        self._pad_id = bundle.manifest.pad_id

    def encode(self, sources: Sequence[Sequence[int]]) -> list[NDArray[np.generic]]:
        """Run the encoder over a micro-batch.

        Args:
            sources: ids of each source, none empty.

        Returns:
            The memory of each source, [its length, decoder_layers * 2 * heads * head_dim].
        """
        (memory,) = self.session.run([MEMORY], encoder_feeds(sources, self._pad_id))
        return [memory[row, : len(ids)] for row, ids in enumerate(sources)]

    def close(self) -> None:
        """End the session; there is no run after it."""
        del self.session


class DecoderSession:
    """The decoder graph; thread-safe. What a thread runs is a `DecoderStep` of its own."""

    def __init__(self, bundle: Bundle, *, run_threads: int = 1, packed: bool = True, shortlist: bool = True) -> None:
        """Load the decoder graph and the one that searches its logits.

        Args:
            run_threads, packed: as for `open_session`.
            shortlist: choose from each segment's candidates alone where the bundle has a shortlist.

        Raises:
            BundleError: one cannot be loaded.
        """
        narrow = shortlist and bundle.has_shortlist
        self.output = OutputLayer(bundle) if narrow else None
        self.session = open_graph(bundle, STATES_DECODER if narrow else DECODER, run_threads=run_threads, packed=packed)
        self.search = open_graph(bundle, SEARCH, run_threads=run_threads)

    def new_step(self, manifest: Manifest, slots: int) -> tuple[SlotTable, "DecoderStep"]:
        """Reserve the buffers of that number of slots, and bind the graph to them."""
        table = SlotTable(manifest, slots, self.output)
        return table, DecoderStep(self, table)

    def close(self) -> None:
        """End the sessions, as far as no step holds them."""
        del self.session, self.search, self.output


class DecoderStep:
    """The decoder graph bound to the rows of one slot table."""

    def __init__(self, decoder: DecoderSession, slots: SlotTable) -> None:
        self._session = decoder.session
        self._search = decoder.search
        self._slots = slots
        self._outputs = {output.name for output in decoder.session.get_outputs()}
        self._bindings: dict[tuple[int, int, int], onnxruntime.IOBinding] = {}

    def prepare(self) -> None:
        """Do nothing: a CPU records nothing."""

    def close(self) -> None:
        """Forget the bindings."""
        self._bindings.clear()

    def run(self, rows: int, start: int = 0) -> NDArray[np.int64]:
        """Decode one token of the slots from `start` to `start + rows`: keys and values in place, lengths stay.

        Returns:
            The next ids, a view of [rows].
        """
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
