"""A model run on whole sentences and translations: its layers' inputs and outputs, and its heads' attention.

The encoder and the decoder over whole sequences, in fp32, with internal values as outputs. The graphs are stored beside
those of a bundle only during the measurement.
"""

import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from dragoman.bundle import MEMORY, SOURCE, SOURCE_LENGTHS, SOURCE_SIZE, WEIGHTS, sha256
from export.attention import Heads, RowLengths, attend_whole
from export.examples import Batch
from export.graph import Graph
from export.graphs import encoder_graph, sequence_positions
from export.network import Network
from export.parameters import Parameters
from export.products import FloatProducts
from export.weights import WeightsFile
from service.runtime.sessions import open_session
from service.runtime.weights import Weights

Floats = NDArray[np.float32]
Feeds = Mapping[str, NDArray[np.generic]]

_ENCODER: Final = "teacher_encoder.onnx"
_DECODER: Final = "teacher_decoder.onnx"
_TARGET: Final = "target"
_READ: Final = "read:"
_MADE: Final = "made:"
_WEIGHTS_OF: Final = "attention:"


class Seen(NamedTuple):
    """The internal values of one batch, by the names of the linear layers.

    Attributes:
        batch: the batch.
        read: the input of each linear layer, [batch, length, in].
        made: the output of the layers that make keys and values, [batch, length, out].
        attention: for each decoder layer the attention to the source, [batch, heads, target, source].
    """

    batch: Batch
    read: Mapping[str, Floats]
    made: Mapping[str, Floats]
    attention: Sequence[Floats]


class Teacher:
    """The two graphs."""

    def __init__(self, parameters: Parameters, folder: Path, weights: WeightsFile) -> None:
        """Write the graphs.

        Args:
            parameters: the parameters of the model.
            folder: the folder of `weights`.
            weights: the weights of a bundle in fp32, which contain nearly all weights of these graphs.
        """
        self._config = parameters.config
        products = FloatProducts(parameters, np.float32)
        graph = encoder_graph(parameters, products, "fp32", weights)
        self._observe(graph, products)
        graph.save(folder / _ENCODER)
        products = FloatProducts(parameters, np.float32)
        graph = _decoder(parameters, products, weights)
        self._observe(graph, products)
        graph.save(folder / _DECODER)
        weights.flush()
        self._folder, self._sha256 = folder, sha256(folder / WEIGHTS)

    def _observe(self, graph: Graph, products: FloatProducts) -> None:
        """Make outputs of the inputs of linear layers, and of the outputs with keys and values."""
        for layer, value in products.read.items():
            graph.node("Identity", value, name=_READ + layer)
            graph.output(_READ + layer, np.float32, [None] * 3)
        for layer, value in products.made.items():
            if layer.startswith("decoder") and layer.endswith("query_key_value"):
                graph.node("Identity", value, name=_MADE + layer)
                graph.output(_MADE + layer, np.float32, [None] * 3)

    def _opened(self) -> list[Any]:
        """Open the sessions of encoder and decoder."""
        with (self._folder / WEIGHTS).open("rb") as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        mapped = Weights.of(content, self._sha256, self._folder)
        files = [self._folder / name for name in (_ENCODER, _DECODER)]
        return [open_session(file.read_bytes(), file, weights=mapped, packed=False) for file in files]

    def run(self, batches: Iterator[Batch]) -> Iterator[Seen]:
        """Run batches, one at a time. The graphs take memory only during the runs."""
        encoder, decoder = self._opened()
        for batch in batches:
            size = np.array(batch.source.shape[1], np.int32)
            feeds: Feeds = {
                SOURCE: batch.source,
                SOURCE_LENGTHS: batch.source_lengths.astype(np.int32),
                SOURCE_SIZE: size,
            }
            values = _run(encoder, feeds)
            memory = values.pop(MEMORY)
            feeds = {_TARGET: batch.target, MEMORY: memory, SOURCE_LENGTHS: batch.source_lengths.astype(np.int64)}
            values |= _run(decoder, feeds)
            made = _named(values, _MADE)
            width = memory.shape[2] // self._config.decoder_layers
            for layer in range(self._config.decoder_layers):
                part = memory[..., layer * width : (layer + 1) * width]
                made[f"decoder.{layer}.cross_attention.key_value"] = part
            attention = [values[f"{_WEIGHTS_OF}{layer}"] for layer in range(self._config.decoder_layers)]
            yield Seen(batch, _named(values, _READ), made, attention)


def _named(values: Mapping[str, Floats], kind: str) -> dict[str, Floats]:
    return {name.removeprefix(kind): value for name, value in values.items() if name.startswith(kind)}


def _run(session: Any, feeds: Feeds) -> dict[str, Floats]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _decoder(parameters: Parameters, products: FloatProducts, weights: WeightsFile) -> Graph:
    """Build the decoder over whole targets; it ends with the input of the output layer.

    From `_TARGET`, int64 [batch, target], `MEMORY` of the encoder and `SOURCE_LENGTHS`, int64 [batch].
    """
    graph, config = Graph(weights), parameters.config
    network = Network(graph, parameters, products, "fp32")
    heads, layers = network.decoder_heads, config.decoder_layers
    target = graph.input(_TARGET, np.int64, ["batch", "target"])
    memory = graph.input(MEMORY, np.float32, ["batch", "source", layers * 2 * heads.number * heads.width])
    lengths = graph.input(SOURCE_LENGTHS, np.int64, ["batch"])
    positions, size = sequence_positions(graph, target)
    last = graph.node("Sub", size, graph.constant(np.int64(1)))
    rows = graph.node("Shape", target, start=0, end=1)
    lasts = graph.node("Cast", graph.node("Expand", last, rows), to=TensorProto.INT32)
    own = RowLengths(lasts, graph.node("Cast", size, to=TensorProto.INT32))
    parts = graph.node("Reshape", memory, graph.constant([0, 0, layers * 2, heads.number, heads.width]))
    parts = graph.node("Transpose", parts, perm=[2, 0, 3, 1, 4])  # [kinds, batch, heads, source, width]
    padding = _padding(graph, memory, lengths)
    states = network.embed("target", target, positions)
    biases = network.biases("decoder", positions, size, whole=True)
    for layer, bias in enumerate(biases):
        path = f"decoder.{layer}"
        read = network.before(states, f"{path}.self_residual")
        if config.decoder_cell == "ssru":
            forget, candidate = network.gate_and_candidate(read, layer)
            update = _recurrence(graph, forget, candidate, target, config.max_positions)
        else:
            packed = network.linear(read, f"{path}.self_attention.query_key_value")
            attended = attend_whole(graph, packed, own, heads, causal=True, bias=bias, half=False)
            update = network.linear(attended, f"{path}.self_attention.output")
        states = network.after(states, update, f"{path}.self_residual")
        query = network.linear(network.before(states, f"{path}.cross_residual"), f"{path}.cross_attention.query")
        keys, values = (
            graph.node("Gather", parts, graph.constant(np.int64(2 * layer + kind)), axis=0) for kind in (0, 1)
        )
        attended = _attend_source(graph, query, keys, values, heads, padding, f"{_WEIGHTS_OF}{layer}")
        update = network.linear(attended, f"{path}.cross_attention.output")
        states = network.feed_forward(network.after(states, update, f"{path}.cross_residual"), path)
    products.read["output"] = network.last(states, "decoder")
    return graph


def _padding(graph: Graph, memory: str, lengths: str) -> str:
    """Make the term added to scores: minus infinity at the padding of a source, float [batch, 1, 1, source]."""
    size = graph.node("Squeeze", graph.node("Shape", memory, start=1, end=2))
    positions = graph.node("Range", graph.constant(np.int64(0)), size, graph.constant(np.int64(1)))
    beyond = graph.node("GreaterOrEqual", positions, graph.node("Unsqueeze", lengths, graph.constant([1, 2, 3])))
    never, zero = graph.constant(np.float32(-np.inf)), graph.constant(np.float32(0))
    return graph.node("Where", beyond, never, zero)


def _attend_source(graph: Graph, query: str, keys: str, values: str, heads: Heads, padding: str, weights: str) -> str:
    """Attend from whole targets [batch, target, width] to keys and values [batch, heads, source, head_dim]."""
    apart = graph.node("Reshape", query, graph.constant([0, 0, heads.number, heads.width]))
    apart = graph.node("Transpose", apart, perm=[0, 2, 1, 3])
    scores = graph.node("MatMul", apart, graph.node("Transpose", keys, perm=[0, 1, 3, 2]))
    if heads.scaled:
        scores = graph.node("Mul", scores, graph.constant(np.float32(heads.width**-0.5)))
    graph.node("Softmax", graph.node("Add", scores, padding), name=weights, axis=-1)
    graph.output(weights, np.float32, [None] * 4)
    together = graph.node("Transpose", graph.node("MatMul", weights, values), perm=[0, 2, 1, 3])
    return graph.node("Reshape", together, graph.constant([0, 0, heads.number * heads.width]))


def _recurrence(graph: Graph, forget: str, candidate: str, target: str, positions: int) -> str:
    """Run a simple recurrent unit over whole targets [batch, target, width], see `model.recurrence`.

    Each position combines its value with that of the previous one, then of the two before, then of four, and so on up
    to all `positions`: a loop would need a graph inside the graph, which the sessions here do not support.
    """
    size = graph.node("Shape", target, start=1, end=2)

    def shifted(values: str, by: int) -> str:
        padded = graph.node("Pad", values, graph.constant([0, by, 0, 0, 0, 0]))
        return graph.node("Slice", padded, graph.constant([0]), size, graph.constant([1]))

    state = graph.node("Mul", candidate, graph.node("Sub", graph.constant(np.float32(1)), forget))
    for by in (1 << power for power in range((positions - 1).bit_length())):
        state = graph.node("Add", state, graph.node("Mul", forget, shifted(state, by)))
        forget = graph.node("Mul", forget, shifted(forget, by))
    return graph.node("Relu", state)
