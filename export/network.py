"""The layers of `model.transformer.Transformer` as ONNX nodes: one definition for all graphs and precisions."""

import math
from typing import Final

import numpy as np

from dragoman.bundle import Precision, cache_names, memory_names, present_name, state_names
from export.attention import Heads, RowLengths, attend_step, attend_whole
from export.graph import Graph
from export.parameters import Floats, Parameters
from export.products import Products
from model.config import TransformerConfig
from model.tables import buckets, sinusoids

_RELU: Final = "relu"


class Network:
    """Writes the layers of a model into a graph."""

    def __init__(self, graph: Graph, parameters: Parameters, products: Products, precision: Precision) -> None:
        self.graph = graph
        self.config: TransformerConfig = parameters.config
        self.products = products
        self.precision = precision
        self._parameters = parameters

    def embed(self, side: str, ids: str, positions: str = "") -> str:
        """Embed ids of the "source" or the "target" at positions, both int [batch, length]; by default from 0."""
        config = self.config
        factor = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        states = self.products.embedding(self.graph, ids, f"{side}_embedding.weight", factor)
        if config.positions != "relative":
            table = self.graph.constant(self._positions(side)[config.position_offset :], self.products.dtype)
            if positions:
                rows = self.graph.node("Gather", table, positions, axis=0)
            else:  # on a GPU, a length stays on the host, where `Slice` needs it
                length = self.graph.node("Shape", ids, start=1, end=2)
                rows = self.graph.node("Slice", table, self.graph.constant([0]), length)
            states = self.graph.node("Add", states, rows)
        return self.norm(states, f"{side}_norm") if config.embedding_norm else states

    def _positions(self, side: str) -> Floats:
        config = self.config
        if config.positions == "learned":
            return self._parameters.read(f"{side}_positions.table")
        return sinusoids(config.max_positions + config.position_offset, config.d_model, config.positions)

    def encoder_layer(self, states: str, layer: int, lengths: RowLengths, bias: str) -> str:
        """Transform states [batch, source, d_model]."""
        config, path = self.config, f"encoder.{layer}"
        heads = Heads(config.heads, config.head_dim_of(config.heads), config.scale_attention)
        packed = self.linear(self.before(states, f"{path}.self_residual"), f"{path}.self_attention.query_key_value")
        half = self.precision == "fp16"
        attended = attend_whole(self.graph, packed, lengths, heads, causal=False, bias=bias, half=half)
        update = self.linear(attended, f"{path}.self_attention.output")
        return self.feed_forward(self.after(states, update, f"{path}.self_residual"), path)

    def decoder_step(
        self, states: str, layer: int, own: RowLengths, source: RowLengths, bias: str, *, reveal: bool
    ) -> str:
        """Transform states [batch, 1, d_model], one position per row.

        Args:
            states: the name of the states.
            layer: the index of the decoder layer.
            own: the lengths of the rows' own keys and values.
            source: the lengths of the rows' encoder memory.
            bias: the bias of the self-attention scores; "": none.
            reveal: whether the scores of the attention to the source become an output.
        """
        path, precision = f"decoder.{layer}", self.precision
        read = self.before(states, f"{path}.self_residual")
        if self.config.decoder_cell == "ssru":
            update = self._recurrence_step(read, layer)
        else:
            packed = self.linear(read, f"{path}.self_attention.query_key_value")
            keys, values = cache_names(layer + 1)[-2:]
            attended = attend_step(
                self.graph, packed, (keys, values), own, self.decoder_heads, precision, own=True, bias=bias
            )
            update = self.linear(attended, f"{path}.self_attention.output")
        states = self.after(states, update, f"{path}.self_residual")
        query = self.linear(self.before(states, f"{path}.cross_residual"), f"{path}.cross_attention.query")
        keys, values = memory_names(layer + 1)[-2:]
        attended = attend_step(
            self.graph, query, (keys, values), source, self.decoder_heads, precision, own=False, reveal=reveal
        )
        update = self.linear(attended, f"{path}.cross_attention.output")
        return self.feed_forward(self.after(states, update, f"{path}.cross_residual"), path)

    @property
    def decoder_heads(self) -> Heads:
        """The heads of a decoder layer."""
        return Heads(self.config.decoder_head_count, self.config.head_dim, self.config.scale_attention)

    def _recurrence_step(self, states: str, layer: int) -> str:
        """Advance a simple recurrent unit by one position, see `model.recurrence`."""
        forget, candidate = self.gate_and_candidate(states, layer)
        state = self.graph.input(state_names(layer + 1)[-1], self.products.dtype, ["batch", 1, self.config.d_model])
        kept = self.graph.node("Mul", forget, self.graph.node("Sub", state, candidate))
        present = self.graph.node("Add", candidate, kept, name=present_name(state))
        self.graph.output(present, self.products.dtype, ["batch", 1, self.config.d_model])
        return self.graph.node("Relu", present)

    def gate_and_candidate(self, states: str, layer: int) -> tuple[str, str]:
        """Compute the share of its state that a recurrent unit keeps, and the new value for the rest."""
        both = self.linear(states, f"decoder.{layer}.recurrence.gate_input")
        gate, candidate = self.graph.nodes("Split", both, names=[f"{both}_0", f"{both}_1"], axis=2, num_outputs=2)
        return self.graph.node("Sigmoid", gate), candidate

    def linear(self, states: str, layer: str, *, non_negative: bool = False) -> str:
        """Multiply by one linear layer."""
        return self.products.linear(self.graph, states, [layer], non_negative=non_negative)

    def before(self, states: str, residual: str) -> str:
        """Compute the input of a sublayer."""
        return self.norm(states, f"{residual}.norm") if self.config.norm == "pre" else states

    def after(self, states: str, update: str, residual: str) -> str:
        """Add a sublayer's output to the sublayer's input."""
        total = self.graph.node("Add", states, update)
        return total if self.config.norm == "pre" else self.norm(total, f"{residual}.norm")

    def last(self, states: str, side: str) -> str:
        """Finish the layers of the "encoder" or the "decoder"."""
        return self.norm(states, f"{side}_norm") if self.config.norm == "pre" else states

    def feed_forward(self, states: str, path: str) -> str:
        """Transform states position by position."""
        config, graph = self.config, self.graph
        read = self.before(states, f"{path}.feed_forward_residual")
        hidden = self.linear(read, f"{path}.feed_forward.expand")
        if config.gated:
            gate, other = graph.nodes("Split", hidden, names=[f"{hidden}_0", f"{hidden}_1"], axis=2, num_outputs=2)
            hidden = graph.node("Mul", self._activated(gate), other)
        else:
            hidden = self._activated(hidden)
        positive = config.activation == _RELU and not config.gated
        update = self.linear(hidden, f"{path}.feed_forward.contract", non_negative=positive)
        return self.after(states, update, f"{path}.feed_forward_residual")

    def _activated(self, states: str) -> str:
        graph, activation = self.graph, self.config.activation
        if activation in ("silu", "gelu_sigmoid"):
            factor = graph.constant(self.products.dtype(1.702))  # section 2 of arXiv:1606.08415
            inner = states if activation == "silu" else graph.node("Mul", states, factor)
            return graph.node("Mul", states, graph.node("Sigmoid", inner))
        if activation in ("gelu", "gelu_tanh"):
            return graph.node("Gelu", states, approximate="none" if activation == "gelu" else "tanh")
        return graph.node("Relu" if activation == _RELU else "Tanh", states)

    def norm(self, states: str, name: str) -> str:
        """Normalize states."""
        graph, dtype, config = self.graph, self.products.dtype, self.config
        weight = graph.constant(self._parameters.read(f"{name}.weight"), dtype)
        if config.norm_kind == "layer":
            bias = graph.constant(self._parameters.read(f"{name}.bias"), dtype)
            return graph.node("LayerNormalization", states, weight, bias, epsilon=config.norm_epsilon, axis=-1)
        # In fp32 for any precision, as in arXiv:1910.07467 and T5.
        half = dtype == np.float16
        wide = graph.node("Cast", states, to=1) if half else states
        square = graph.node("Pow", wide, graph.constant(np.float32(2)))
        mean = graph.node("ReduceMean", square, graph.constant([-1]))
        root = graph.node("Sqrt", graph.node("Add", mean, graph.constant(np.float32(config.norm_epsilon))))
        normal = graph.node("Div", wide, root)
        return graph.node("Mul", graph.node("Cast", normal, to=10) if half else normal, weight)

    def biases(self, side: str, queries: str, keys: str, *, whole: bool) -> list[str]:
        """Look up the biases of self-attention scores by distance, as in T5 (arXiv:1910.10683).

        Args:
            side: "encoder" or "decoder".
            queries: positions, int64: [queries], the same for every row, or [rows], one query per row.
            keys: the number of keys, int64 scalar.
            whole: whether the queries are the same for every row.

        Returns:
            For each layer [rows or 1, heads, queries, keys]; "" if the model has no such bias.
        """
        graph, config = self.graph, self.config
        layers, heads = config.encoder_layers, config.heads
        if side == "decoder":
            layers, heads = config.decoder_layers, config.decoder_head_count
        if config.positions != "relative":
            return [""] * layers
        causal, last = side == "decoder", config.relative_max_distance  # larger distances share its bucket
        distances = np.arange(-last, 1 if causal else last + 1)
        places = buckets(distances, config.relative_buckets, last, causal=causal)
        positions = graph.node("Range", graph.constant(np.int64(0)), keys, graph.constant(np.int64(1)))
        found = graph.node(
            "Sub", positions, graph.node("Unsqueeze", queries, graph.constant([0, 2] if whole else [1, 2]))
        )
        found = graph.node("Add", found, graph.constant(np.int64(last)))
        ends = graph.constant(np.int64(0)), graph.constant(np.int64(len(places) - 1))
        found = graph.node("Clip", found, *ends)
        tables = self._parameters.read(f"{side}_bias.table").reshape(-1, config.relative_buckets, heads)
        biases = []
        for table in tables:
            rows = graph.node("Gather", graph.constant(table[places], self.products.dtype), found, axis=0)
            biases.append(graph.node("Transpose", rows, perm=[0, 3, 1, 2]))
        return biases if len(biases) == layers else biases * layers
