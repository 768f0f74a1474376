"""Matrix products and embeddings of a graph: in fp32, in half precision, or in int8."""

from collections.abc import Mapping
from typing import Final, Protocol

import numpy as np
from onnx import numpy_helper

from dragoman.bundle import OUTPUT_BIASES, OUTPUT_WEIGHTS, OUTPUT_WORTHS, Precision
from export.graph import CONTRIB, Graph
from export.parameters import Parameters
from export.quantize import Floats, input_scale, row_levels, weight_levels

Ranges = Mapping[str, float]  # the range of each linear layer's input, by the layer's name

KEY_VALUE_TYPES: Final[Mapping[Precision, type[np.generic]]] = {
    "fp32": np.float32,
    "int8": np.int8,
    "fp16": np.float16,
}
# The types of the output layer's input.
OUTPUT_STATES_TYPES: Final[Mapping[Precision, type[np.generic]]] = {
    "fp32": np.float32,
    "int8": np.uint8,
    "fp16": np.float16,
}


class Products(Protocol):
    """The linear layers and embeddings of a graph.

    Attributes:
        dtype: the type of the states between them.
    """

    dtype: type[np.floating]

    def linear(
        self, graph: Graph, states: str, layers: list[str], *, non_negative: bool = False, name: str = ""
    ) -> str:
        """Multiply states [..., in] by the weights of layers, side by side.

        Args:
            graph: the graph to write to.
            states: the name of the states.
            layers: the layers that read these states.
            non_negative: whether the states are never negative.
            name: the name of the result; "": a new name.

        Returns:
            The name of [..., sum of out].
        """

    def logits(self, graph: Graph, states: str, name: str) -> None:
        """Multiply states [batch, d_model] by the output layer, to [batch, vocabulary] of this name."""

    def output_states(self, graph: Graph, states: str, name: str) -> None:
        """Convert states [batch, d_model] to the input form of the output layer, under this name."""

    def candidate_logits(self, graph: Graph, states: str, name: str) -> None:
        """Multiply the output states of one row by the weights of some target pieces, to [1, candidates] of this name.

        The output layer's values for these pieces are inputs, see `dragoman.bundle`; by default, those of all pieces.
        """

    def embedding(self, graph: Graph, ids: str, weight: str, factor: float) -> str:
        """Look up ids [...] in the rows of a weight, times a factor. Returns the name of [..., d_model]."""


def output_biases(parameters: Parameters) -> Floats:
    """Read the biases of the output layer; zeros if it has none: [vocabulary]."""
    bias = parameters.bias("output")
    return np.zeros(len(parameters.read("output.weight")), np.float32) if bias is None else bias


class FloatProducts:
    """Products of floats.

    Attributes:
        read: the name of each linear layer's input, by the layer's name.
        made: the name of each linear layer's output, by the layer's name.
    """

    def __init__(self, parameters: Parameters, dtype: type[np.floating]) -> None:
        self.dtype = dtype
        self._parameters = parameters
        self.read: dict[str, str] = {}
        self.made: dict[str, str] = {}

    def linear(
        self, graph: Graph, states: str, layers: list[str], *, non_negative: bool = False, name: str = ""
    ) -> str:
        """See `Products.linear`."""
        del non_negative
        weight = np.concatenate([self._parameters.read(f"{layer}.weight") for layer in layers])
        biases = [bias for layer in layers if (bias := self._parameters.bias(layer)) is not None]
        product = graph.node("MatMul", states, graph.constant(weight.T, self.dtype), name="" if biases else name)
        if biases:
            product = graph.node("Add", product, graph.constant(np.concatenate(biases), self.dtype), name=name)
        self.read |= dict.fromkeys(layers, states)
        self.made |= dict.fromkeys(layers, product)
        return product

    def logits(self, graph: Graph, states: str, name: str) -> None:
        """See `Products.logits`."""
        bias = self._parameters.bias("output")
        inputs = [states, graph.constant(self._parameters.read("output.weight"), self.dtype)]
        inputs += [] if bias is None else [graph.constant(bias, self.dtype)]
        graph.node("Gemm", *inputs, name=name, transB=1)
        self.read["output"] = states

    def output_states(self, graph: Graph, states: str, name: str) -> None:
        """See `Products.output_states`."""
        graph.node("Identity", states, name=name)

    def candidate_logits(self, graph: Graph, states: str, name: str) -> None:
        """See `Products.candidate_logits`; weights are [candidates, d_model]."""
        weight = self._parameters.read("output.weight")
        states = graph.input(states, self.dtype, [1, weight.shape[1]])
        weights = graph.input(OUTPUT_WEIGHTS, self.dtype, ["candidates", weight.shape[1]], weight)
        biases = graph.input(OUTPUT_BIASES, self.dtype, ["candidates"], output_biases(self._parameters))
        graph.node("Gemm", states, weights, biases, name=name, transB=1)

    def embedding(self, graph: Graph, ids: str, weight: str, factor: float) -> str:
        """See `Products.embedding`."""
        rows = graph.node("Gather", graph.constant(self._parameters.read(weight), self.dtype), ids, axis=0)
        return rows if factor == 1.0 else graph.node("Mul", rows, graph.constant(self.dtype(factor)))


class ByteProducts:
    """Products of int8 values, see `export.quantize`."""

    dtype: type[np.floating] = np.float32

    def __init__(self, parameters: Parameters, ranges: Ranges) -> None:
        self._parameters = parameters
        self._ranges = ranges

    def linear(
        self, graph: Graph, states: str, layers: list[str], *, non_negative: bool = False, name: str = ""
    ) -> str:
        """See `Products.linear`."""
        biases = [bias for layer in layers if (bias := self._parameters.bias(layer)) is not None]
        weight = np.concatenate([self._parameters.read(f"{layer}.weight") for layer in layers])
        bias = np.concatenate(biases) if biases else None
        return self._product(graph, states, weight, bias, self._ranges[layers[0]], non_negative=non_negative, name=name)

    def logits(self, graph: Graph, states: str, name: str) -> None:
        """See `Products.logits`."""
        weight, bias = self._parameters.read("output.weight"), self._parameters.bias("output")
        if bias is not None:
            self._product(graph, states, weight, bias, self._ranges["output"], name=name)
            return
        # The same kernel and the same bits. The other operator is slower to multiply the scales of all pieces with the
        # input's, at each run, but its bias may be a fraction of a level.
        scale, zero_point = self._input_scale(graph, "output")
        levels, worth = weight_levels(weight)
        zero = numpy_helper.from_array(np.zeros(1, np.int8))
        graph.node(
            "QGemm",
            graph.node("QuantizeLinear", states, scale, zero_point),
            scale,
            zero_point,
            graph.constant(levels),
            graph.constant(worth),
            # onnxruntime wants a zero point for each scale.
            graph.node("ConstantOfShape", graph.constant([len(worth)]), value=zero),
            name=name,
            domain=CONTRIB,
        )

    def output_states(self, graph: Graph, states: str, name: str) -> None:
        """See `Products.output_states`."""
        scale, zero_point = self._input_scale(graph, "output")
        graph.node("QuantizeLinear", states, scale, zero_point, name=name)

    def candidate_logits(self, graph: Graph, states: str, name: str) -> None:
        """See `Products.candidate_logits`; weights are [d_model, candidates], in the order in which they are read."""
        levels, worth = weight_levels(self._parameters.read("output.weight"))
        scale, zero_point = self._input_scale(graph, "output")
        graph.node(
            "MatMulIntegerToFloat",
            graph.input(states, np.uint8, [1, len(levels)]),
            graph.input(OUTPUT_WEIGHTS, np.int8, [len(levels), "candidates"], levels),
            scale,
            graph.input(OUTPUT_WORTHS, np.float32, ["candidates"], worth),
            zero_point,
            "",
            graph.input(OUTPUT_BIASES, np.float32, ["candidates"], output_biases(self._parameters)),
            name=name,
            domain=CONTRIB,
        )

    def _input_scale(self, graph: Graph, layer: str) -> list[str]:
        return [graph.constant(each) for each in input_scale(self._ranges[layer], non_negative=False)]

    def _product(
        self,
        graph: Graph,
        states: str,
        weight: Floats,
        bias: Floats | None,
        largest: float,
        *,
        non_negative: bool = False,
        name: str = "",
    ) -> str:
        levels, worth = weight_levels(weight)
        scale, zero_point = (graph.constant(each) for each in input_scale(largest, non_negative=non_negative))
        return graph.node(
            "MatMulIntegerToFloat",
            graph.node("QuantizeLinear", states, scale, zero_point),
            graph.constant(levels),
            scale,
            graph.constant(worth),
            zero_point,
            "",
            "" if bias is None else graph.constant(bias, np.float32),
            name=name,
            domain=CONTRIB,
        )

    def embedding(self, graph: Graph, ids: str, weight: str, factor: float) -> str:
        """See `Products.embedding`; the factor is in the scales."""
        levels, worth = row_levels(self._parameters.read(weight))
        rows = graph.node("Cast", graph.node("Gather", graph.constant(levels), ids, axis=0), to=1)
        return graph.node("Mul", rows, graph.node("Gather", graph.constant(worth * np.float32(factor)), ids, axis=0))
