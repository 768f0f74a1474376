"""The scores of one layer's attention to the source, as an output of the decoder graph.

They are given before the softmax, which the reader of a row computes: it knows how many source tokens there are. On a
CPU the operator writes them beside its result, which costs nothing. On a GPU it cannot, so in half precision, which is
for GPUs, they are computed once more: a product of one query and the keys.
"""

from typing import Final

import numpy as np
import onnx_ir
from onnx_ir import Attr, AttributeType, Node, Tensor, Value

from dragoman.bundle import ATTENTION_SCORES, memory_names

_BEFORE_SOFTMAX: Final = 1  # of the operator's attribute `qk_output`
_SCORES: Final = 3  # the place of the scores among the operator's outputs


def reveal(graph: onnx_ir.Graph, layer: int) -> None:
    """Make the scores an output: `ATTENTION_SCORES` [batch, heads, 1, source_capacity].

    Args:
        graph: of the decoder.
        layer: of the decoder.
    """
    key = memory_names(layer + 1)[2 * layer]
    [node] = [node for node in graph if node.op_type == "GroupQueryAttention" and _name(node.inputs[3]) == key]
    result, keys = node.outputs[0], node.inputs[3]
    assert result.dtype is not None
    assert result.shape is not None
    assert keys is not None
    assert keys.shape is not None
    heads, width = node.attributes["num_heads"].as_int(), keys.shape[3]
    assert isinstance(width, int)
    is_half = result.dtype == onnx_ir.DataType.FLOAT16
    scores = _recomputed(graph, node, heads, width) if is_half else _written(node)
    scores.name = ATTENTION_SCORES
    scores.type = onnx_ir.TensorType(result.dtype)
    scores.shape = onnx_ir.Shape([result.shape[0], heads, 1, keys.shape[2]])
    graph.outputs.append(scores)


def _name(value: Value | None) -> str | None:
    return None if value is None else value.name


def _written(node: Node) -> Value:
    node.attributes["qk_output"] = Attr("qk_output", AttributeType.INT, _BEFORE_SOFTMAX)
    before = len(node.outputs)
    node.resize_outputs(_SCORES + 1)
    for unused in node.outputs[before:_SCORES]:
        unused.name = ""
    return node.outputs[_SCORES]


def _recomputed(graph: onnx_ir.Graph, node: Node, heads: int, width: int) -> Value:
    query, keys = node.inputs[0], node.inputs[3]
    scale = node.attributes["scale"].as_float() if "scale" in node.attributes else width**-0.5
    shape = onnx_ir.node("Constant", [], {"value": Tensor(np.array([-1, heads, 1, width], np.int64))})
    factor = onnx_ir.node("Constant", [], {"value": Tensor(np.array(scale, np.float16))})
    # One query a row: its heads lie one behind the other.
    apart = onnx_ir.node("Reshape", [query, shape.outputs[0]])
    turned = onnx_ir.node("Transpose", [keys], {"perm": [0, 1, 3, 2]})
    scaled = onnx_ir.node("Mul", [apart.outputs[0], factor.outputs[0]])
    product = onnx_ir.node("MatMul", [scaled.outputs[0], turned.outputs[0]])
    graph.insert_before(node, [shape, factor, apart, turned, scaled, product])
    return product.outputs[0]
