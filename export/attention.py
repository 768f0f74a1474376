"""The three attentions of a Transformer as one operator of ONNX Runtime, com.microsoft::GroupQueryAttention.

It reads only each row's valid length, writes new keys and values into the buffer that it is given, and needs no mask.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from dragoman.bundle import ATTENTION_SCORES, Precision, present_name
from export.graph import CONTRIB, Graph
from export.products import KEY_VALUE_TYPES

OPERATOR: Final = "GroupQueryAttention"
HEAD_DIM_UNIT: Final = 8  # the operator takes heads of its multiples only
_BIAS: Final = 10  # the place of attention_bias among the operator's inputs
_SCALES: Final = 12  # the place of k_scale and v_scale among the operator's inputs
_BEFORE_SOFTMAX: Final = 1  # of the operator's attribute `qk_output`


class Heads(NamedTuple):
    """The heads of an attention.

    Attributes:
        number: how many.
        width: of each.
        scaled: whether scores are divided by the root of the width.
    """

    number: int
    width: int
    scaled: bool

    def attributes(self, *, causal: bool) -> dict[str, Any]:
        """Give what every operator of theirs has; `causal` masks the keys behind a query."""
        scale = {} if self.scaled else {"scale": 1.0}
        return {"num_heads": self.number, "kv_num_heads": self.number, "causal": int(causal), **scale}


class RowLengths(NamedTuple):
    """Lengths in the operator's terms, by their names.

    Attributes:
        last: int32 [batch], the last valid position of each row once this run's keys are written.
        size: int32 scalar, positions of the buffer.
    """

    last: str
    size: str


def attend_whole(
    graph: Graph, packed: str, lengths: RowLengths, heads: Heads, *, causal: bool, bias: str, half: bool
) -> str:
    """Attend over whole sequences.

    Args:
        graph: to write to.
        packed: queries, keys and values [batch, length, 3 * heads * width].
        lengths: of the rows.
        heads: of the attention.
        causal: a position sees itself and earlier ones.
        bias: of the scores, [1, heads, length, length]; none if empty.
        half: half precision, which is for GPUs: there the operator needs outputs that nobody reads.

    Returns:
        The name of [batch, length, heads * width].
    """
    inputs = [packed, "", "", "", "", *lengths, "", "", "", bias]
    result = f"{packed}_attended"
    names = [result, f"{result}_keys", f"{result}_values"] if half else [result]
    graph.nodes(OPERATOR, *inputs, names=names, domain=CONTRIB, **heads.attributes(causal=causal))
    return result


def attend_step(
    graph: Graph,
    query: str,
    cache: tuple[str, str],
    lengths: RowLengths,
    heads: Heads,
    precision: Precision,
    *,
    own: bool,
    bias: str = "",
    reveal: bool = False,
) -> str:
    """Attend from one position a row, to keys and values in buffers.

    Args:
        graph: to write to.
        query: [batch, 1, heads * width]; for the own sequence queries, keys and values, packed.
        cache: the graph's inputs of keys and values [batch, heads, capacity, width].
        lengths: of the rows.
        heads: of the attention.
        precision: of the bundle.
        own: to the row's own sequence, whose new key and value are written; else the buffers are complete.
        bias: of the scores, [batch, heads, 1, capacity]; none if empty.
        reveal: make an output of the graph of the scores, `ATTENTION_SCORES`.

    Returns:
        The name of [batch, 1, heads * width].
    """
    attributes, dtype = heads.attributes(causal=True), KEY_VALUE_TYPES[precision]
    new = "" if own else _nothing(graph, query)
    inputs = [query, new, new, *cache, *lengths]
    if bias:
        inputs += [""] * (_BIAS - len(inputs)) + [bias]
    if precision == "int8":
        # Of bytes, the operator wants its buffers as outputs even where it writes nothing; a level is worth 1.
        attributes |= {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
        inputs += [""] * (_SCALES - len(inputs)) + [graph.constant(np.ones(1, np.float32))] * 2
    written = own or precision == "int8"
    names = [f"{query}_attended", *map(present_name, cache)] if written else [f"{query}_attended"]
    capacity = "target_capacity" if own else "source_capacity"
    if written:
        for name in names[1:]:
            graph.output(name, dtype, ["batch", heads.number, capacity, heads.width])
    if reveal and precision == "fp16":
        _recompute(graph, query, cache[0], heads)
    elif reveal:
        attributes["qk_output"] = _BEFORE_SOFTMAX
        names += [""] * (3 - len(names)) + [ATTENTION_SCORES]
    graph.nodes(OPERATOR, *inputs, names=names, domain=CONTRIB, **attributes)
    if reveal:
        states = np.float16 if precision == "fp16" else np.float32
        graph.output(ATTENTION_SCORES, states, ["batch", heads.number, 1, "source_capacity"])
    return names[0]


def _nothing(graph: Graph, query: str) -> str:
    """Make the empty keys and values [batch, 0, width] of an attention to what is complete."""
    zero, one = graph.constant([0]), graph.constant([1])
    return graph.node("Slice", query, zero, zero, one, one)


def _recompute(graph: Graph, query: str, keys: str, heads: Heads) -> None:
    """Compute the scores once more, a product of one query and the keys: on a GPU the operator cannot give them."""
    factor = heads.width**-0.5 if heads.scaled else 1.0
    apart = graph.node("Reshape", query, graph.constant([-1, heads.number, 1, heads.width]))
    turned = graph.node("Transpose", keys, perm=[0, 1, 3, 2])
    scaled = graph.node("Mul", apart, graph.constant(np.float16(factor)))
    graph.node("MatMul", scaled, turned, name=ATTENTION_SCORES)
