"""The output layer, computed for the candidates of each segment only, where a model has a shortlist.

The output layer takes most of a step of a small model: 158 microseconds for one row over 32,000 pieces, 11 over 939
candidates. Each row has its own candidates and is multiplied alone: so the other segments of a batch cannot change the
candidates of a segment, nor a bit of their logits.
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
    """The weights of the output layer for the candidates of a segment.

    Attributes:
        ids: ids of the candidates, int64, in rising order.
        inputs: inputs of the graph, by name.
    """

    ids: NDArray[np.int64]
    inputs: dict[str, NDArray[np.generic]]


class OutputLayer:
    """The output layer of a bundle with a shortlist, in host memory; thread-safe."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the graph, its weights and the shortlist.

        Raises:
            BundleError: one of these cannot be loaded, or the shortlist belongs to another model.
        """
        manifest = bundle.manifest
        self.session = open_graph(bundle, OUTPUT_LAYER)
        with bundle.mapped(WEIGHTS) as content:
            weights = Weights.of(content, manifest.files.get(WEIGHTS, ""), bundle.path)
            self._given = defaults(Graph(*bundle.graph(OUTPUT_LAYER), content), weights)
            # One row for each piece: a segment needs few rows, while a column is spread over the whole matrix.
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
        """Find the candidates of a segment, and gather their weights into contiguous arrays.

        Args:
            source_ids: source ids of the segment.
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
    """A row that is ready for a run: its columns, the binding of the graph, and its logits [1, candidates]."""

    columns: Columns
    binding: onnxruntime.IOBinding
    logits: NDArray[np.floating]


class SlotOutputs:
    """The candidates of each slot.

    Attributes:
        states: input of the output layer for each slot, [slots, d_model].
    """

    def __init__(self, layer: OutputLayer, next_ids: NDArray[np.int64], logits: NDArray[np.floating]) -> None:
        """Make slots without candidates.

        Args:
            next_ids: [slots], where the best candidate of each slot is written.
            logits: [slots, vocabulary_size], where `spread` writes.
        """
        self._layer, self._session = layer, layer.session
        self.states: NDArray[np.generic] = np.zeros((len(next_ids), layer.d_model), layer.states_type)
        self._next_ids = next_ids
        self._logits = logits
        self._columns: list[Columns | None] = [None] * len(next_ids)
        self._bound: list[_Bound | None] = [None] * len(next_ids)
        self._spread: list[Columns | None] = [None] * len(next_ids)  # the columns that each row of the logits is for

    def restrict(self, slot: int, source_ids: Iterable[int], given_ids: Iterable[int]) -> None:
        """Make a slot choose only from the candidates of its segment; the ids are as for `OutputLayer.columns`."""
        self._columns[slot] = self._layer.columns(source_ids, given_ids)

    def move(self, source: int, target: int) -> None:
        """Give slot `target` the candidates of slot `source`."""
        self._columns[target] = self._columns[source]

    def run(self, rows: slice) -> None:
        """Find the best candidate of each slot, from its state."""
        for slot in range(rows.start, rows.stop):
            self._session.run_with_iobinding(self._bind(slot).binding)

    def spread(self, slots: Sequence[int]) -> None:
        """Write the logits of slots for the whole vocabulary; pieces that are no candidates get minus infinity."""
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
