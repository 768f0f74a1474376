"""The output layer over the candidates of each segment alone, where a model has a shortlist.

Of a small model most of a step is the output layer: of 32,000 pieces it takes 158 microseconds for one row, of 939
candidates 11. Each row is multiplied by itself, since each has candidates of its own: so what stands beside a segment
cannot change its candidates, nor a bit of their logits.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dragoman.bundle import (
    CANDIDATES,
    LOGITS,
    NEXT_IDS,
    OUTPUT_LAYER,
    OUTPUT_WEIGHTS,
    SHORTLIST,
    STATES,
    WEIGHTS,
    Bundle,
)
from dragoman.errors import BundleError, DataError
from dragoman.shortlist import Shortlist
from dragoman.tokenizer import is_joint
from service.runtime.binding import Tensor, bind
from service.runtime.onnx_file import Graph
from service.runtime.sessions import open_graph
from service.runtime.weights import Weights, defaults

_STATES_TYPES: Final = {"fp32": np.float32, "int8": np.uint8}


class Columns(NamedTuple):
    """What the output layer has of the candidates of a segment.

    Attributes:
        ids: of the candidates, int64, rising.
        inputs: of the graph, by name.
    """

    ids: NDArray[np.int64]
    inputs: dict[str, NDArray[np.generic]]


class OutputLayer:
    """The output layer of a bundle with a shortlist, in host memory; thread-safe."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the graph, its weights and the shortlist.

        Raises:
            BundleError: one cannot be loaded, or the shortlist is that of another model.
        """
        manifest = bundle.manifest
        self.session = open_graph(bundle, OUTPUT_LAYER)
        with bundle.mapped(WEIGHTS) as content:
            weights = Weights.of(content, manifest.files.get(WEIGHTS, ""), bundle.path)
            self._given = defaults(Graph(*bundle.graph(OUTPUT_LAYER), content), weights)
            # A row a piece: a segment needs few of them, while columns lie across all of the memory.
            rows = self._given.pop(OUTPUT_WEIGHTS)
            self._turned = manifest.precision == "int8"
            self._rows = np.ascontiguousarray(rows.T) if self._turned else rows
        self.states_type = _STATES_TYPES[manifest.precision]
        self.d_model = manifest.d_model
        self._pieces = manifest.vocabulary_size
        self._joint = is_joint(list(manifest.files))
        try:
            self._shortlist = Shortlist(bundle.read(SHORTLIST), bundle.path / SHORTLIST)
            self._shortlist.check(self._shortlist.source_pieces, self._pieces)
        except DataError as error:
            raise BundleError(str(error)) from error

    def columns(self, source_ids: Iterable[int], given_ids: Iterable[int]) -> Columns:
        """Find the candidates of a segment, and lay what the layer has of them side by side.

        Args:
            source_ids: of the segment.
            given_ids: target ids that the caller asks for: of a prefix, of terms, of a translation to be scored.
        """
        ids = self._shortlist.candidates(source_ids, self._pieces, joint=self._joint, given=given_ids)
        weights = self._rows.take(ids, axis=0)
        inputs: dict[str, NDArray[np.generic]] = {name: numbers.take(ids) for name, numbers in self._given.items()}
        inputs[CANDIDATES] = ids
        inputs[OUTPUT_WEIGHTS] = np.ascontiguousarray(weights.T) if self._turned else weights
        return Columns(ids, inputs)

    def close(self) -> None:
        """End the session; there is no run after it."""
        del self.session


class _Bound(NamedTuple):
    """A row whose output layer can be run: of which columns, how, and where its logits [1, candidates] lie."""

    columns: Columns
    binding: onnxruntime.IOBinding
    logits: NDArray[np.floating]


class SlotOutputs:
    """The candidates of each slot.

    Attributes:
        states: what the output layer reads of each slot, [slots, d_model].
    """

    def __init__(self, layer: OutputLayer, next_ids: NDArray[np.int64], logits: NDArray[np.floating]) -> None:
        """Make slots without candidates.

        Args:
            layer: that all of them have.
            next_ids: [slots], where the best candidate of each slot is written.
            logits: [slots, vocabulary_size], where `spread` writes.
        """
        self._layer, self._session = layer, layer.session
        self.states: NDArray[np.generic] = np.zeros((len(next_ids), layer.d_model), layer.states_type)
        self._next_ids = next_ids
        self._logits = logits
        self._columns: list[Columns | None] = [None] * len(next_ids)
        self._bound: list[_Bound | None] = [None] * len(next_ids)
        self._spread: list[Columns | None] = [None] * len(next_ids)  # those of which the row of the logits is

    def restrict(self, slot: int, source_ids: Iterable[int], given_ids: Iterable[int]) -> None:
        """Let a slot choose from the candidates of its segment alone, whose ids are those of `OutputLayer.columns`."""
        self._columns[slot] = self._layer.columns(source_ids, given_ids)

    def move(self, source: int, target: int) -> None:
        """Let a slot have the candidates of another."""
        self._columns[target] = self._columns[source]

    def run(self, rows: slice) -> None:
        """Find the best candidate of slots, by their states."""
        for slot in range(rows.start, rows.stop):
            self._session.run_with_iobinding(self._bind(slot).binding)

    def spread(self, slots: Sequence[int]) -> None:
        """Write the logits of slots as those of the whole vocabulary, where all but candidates are impossible."""
        for slot in slots:
            bound, row = self._bind(slot), self._logits[slot]
            if self._spread[slot] is not bound.columns:
                row.fill(-np.inf)
                self._spread[slot] = bound.columns
            row[bound.columns.ids] = bound.logits[0]

    def _bind(self, slot: int) -> _Bound:
        columns, bound = self._columns[slot], self._bound[slot]
        assert columns is not None
        if bound is None or bound.columns is not columns:
            logits: NDArray[np.floating] = np.empty((1, len(columns.ids)), self._logits.dtype)
            outputs = {NEXT_IDS: self._next_ids[slot : slot + 1], LOGITS: logits}
            inputs = columns.inputs | {STATES: self.states[slot : slot + 1]}
            binding = bind(
                self._session,
                {name: Tensor.of(array) for name, array in inputs.items()},
                {name: Tensor.of(array) for name, array in outputs.items()},
            )
            self._bound[slot] = bound = _Bound(columns, binding, logits)
        return bound
