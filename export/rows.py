"""The two small graphs that keep a decode batch in a device's memory: a server has no other way to work there.

Both read and write what they are bound to, so that nothing passes through the host.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from dragoman.bundle import BYTES, COPIED, MEMORY, PADDING, Precision, memory_names
from model.config import TransformerConfig

OPSET: Final = 20
IR_VERSION: Final = 10
_TYPES: Final[dict[Precision, int]] = {
    "fp32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "fp16": TensorProto.FLOAT16,
}


def write_place(config: TransformerConfig, precision: Precision, file: Path) -> None:
    """Export what lays the encoder memory of one source out as the decoder reads it, behind the source zeros.

    From `MEMORY` [1, source, decoder_layers * 2 * heads * head_dim] and `PADDING`, int64 [6], how many zeros to put
    before and behind each dimension, to `memory_names`, each [1, heads, source and padding, head_dim].

    Args:
        config: of the model.
        precision: of the bundle.
        file: to write.
    """
    dtype, names = _TYPES[precision], memory_names(config.decoder_layers)
    heads, head_dim = config.decoder_head_count, config.head_dim
    parts = helper.make_tensor(
        "parts", TensorProto.INT64, [4], [-1, len(names), heads, head_dim]
    )  # a source has one row, so the positions may come first
    nodes = [
        helper.make_node("Pad", [MEMORY, PADDING], ["padded"]),
        helper.make_node("Reshape", ["padded", "parts"], ["positions_first"]),
        helper.make_node("Transpose", ["positions_first"], ["parts_first"], perm=[1, 2, 0, 3]),
        helper.make_node("Split", ["parts_first"], names, axis=0, num_outputs=len(names)),
    ]
    inputs = [
        helper.make_tensor_value_info(MEMORY, dtype, [1, "source", len(names) * heads * head_dim]),
        helper.make_tensor_value_info(PADDING, TensorProto.INT64, [6]),
    ]
    shape: list[str | int | None] = [1, heads, "source_capacity", head_dim]
    outputs = [helper.make_tensor_value_info(name, dtype, shape) for name in names]
    save_graph("place", nodes, inputs, outputs, [parts], file)


def write_copy(file: Path) -> None:
    """Export what copies `BYTES` to `COPIED`, int8 [size]: bytes of whatever type."""
    nodes = [helper.make_node("Identity", [BYTES], [COPIED])]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.INT8, ["size"])] for name in (BYTES, COPIED))
    save_graph("copy", nodes, inputs, outputs, [], file)


def save_graph(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto],
    file: Path,
) -> None:
    """Write a graph that is put together by hand, checked."""
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, file)
