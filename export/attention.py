"""The three attentions of a Transformer as one operator of ONNX Runtime, com.microsoft::GroupQueryAttention.

It reads only the valid length of each row, writes new keys and values into the given buffer, and needs no mask.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from dragoman.bundle import ATTENTION_SCORES, Precision, present_name
from export.graph import CONTRIB, Graph
from export.products import KEY_VALUE_TYPES

OPERATOR: Final = "GroupQueryAttention"
_BIAS: Final = 10  # the index of attention_bias among the operator's inputs
_SCALES: Final = 12  # the index of k_scale and v_scale among the operator's inputs
_BEFORE_SOFTMAX: Final = 1  # a value of the operator's attribute `qk_output`


class Heads(NamedTuple):
    """The heads of an attention.

    Attributes:
        number: the number of heads.
        width: the size of each head.
        scaled: whether scores are divided by the square root of the width.
    """

    number: int
    width: int
    scaled: bool

    def attributes(self, *, causal: bool) -> dict[str, Any]:
        """Give the attributes that every attention operator has; `causal` masks the keys after a query."""
        scale = {} if self.scaled else {"scale": 1.0}
        return {"num_heads": self.number, "kv_num_heads": self.number, "causal": int(causal), **scale}


class RowLengths(NamedTuple):
    """Lengths as the operator needs them, by the names of their values.

    Attributes:
        last: int32 [batch], the last valid position of each row after this run has written its keys.
        size: int32 scalar, the number of positions of the buffer.
    """

    last: str
    size: str


def attend_whole(
    graph: Graph, packed: str, lengths: RowLengths, heads: Heads, *, causal: bool, bias: str, half: bool
) -> str:
    """Attend over whole sequences.

    Args:
        graph: the graph to write to.
        packed: queries, keys and values [batch, length, 3 * heads * width].
        lengths: the lengths of the rows.
        heads: the heads of the attention.
        causal: whether a position sees only itself and earlier ones.
        bias: the bias of the scores, [1, heads, length, length]; "": none.
        half: whether the precision is half, which is for GPUs: there the operator needs outputs that are not used.

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
    """Attend from one position per row to keys and values in buffers.

    Args:
        graph: the graph to write to.
        query: [batch, 1, heads * width]; if `own`, packed queries, keys and values.
        cache: the graph's inputs of keys and values [batch, heads, capacity, width].
        lengths: the lengths of the rows.
        heads: the heads of the attention.
        precision: the precision of the bundle.
        own: True: attend to the row's own sequence, and write its new key and value; False: the buffers are complete.
        bias: the bias of the scores, [batch, heads, 1, capacity]; "": none.
        reveal: whether the scores become an output of the graph, `ATTENTION_SCORES`.

    Returns:
        The name of [batch, 1, heads * width].
    """
    attributes, dtype = heads.attributes(causal=True), KEY_VALUE_TYPES[precision]
    new = "" if own else _nothing(graph, query)
    inputs = [query, new, new, *cache, *lengths]
    if bias:
        inputs += [""] * (_BIAS - len(inputs)) + [bias]
    if precision == "int8":
        # For int8, the operator needs its buffers as outputs even if it writes nothing; the scale of a level is 1.
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
    """Make empty keys and values [batch, 0, width], for an attention to complete buffers."""
    zero, one = graph.constant([0]), graph.constant([1])
    return graph.node("Slice", query, zero, zero, one, one)


def _recompute(graph: Graph, query: str, keys: str, heads: Heads) -> None:
    """Compute the scores again as a product of one query and the keys: on a GPU the operator cannot output them."""
    factor = heads.width**-0.5 if heads.scaled else 1.0
    apart = graph.node("Reshape", query, graph.constant([-1, heads.number, 1, heads.width]))
    turned = graph.node("Transpose", keys, perm=[0, 1, 3, 2])
    scaled = graph.node("Mul", apart, graph.constant(np.float16(factor)))
    graph.node("MatMul", scaled, turned, name=ATTENTION_SCORES)
