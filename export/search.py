"""The graph that finds the best tokens of each row of logits, and how probable they and others are.

It has no weights. As in `export.argmax`, a row is cut into blocks: the best `count` values lie in the `count` blocks
with the largest maxima, so TopK looks at few values. 32 rows of 8,000, the best 8: 0.2 ms of a core, LogSoftmax
included; ReduceLogSumExp in its place takes six times as long.

A row's results depend on this row alone, and those for a small count are the first of those for a larger one: of equal
values TopK gives the earlier first, and blocks come in the order of their maxima.
"""

from pathlib import Path
from typing import Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from dragoman.bundle import (
    ASKED_IDS,
    ASKED_LOG_PROBABILITIES,
    BEST_IDS,
    BEST_LOG_PROBABILITIES,
    COUNT,
    LOGITS,
    Precision,
)
from export.argmax import block_size
from export.rows import save_graph

_TYPES: Final[dict[Precision, int]] = {
    "fp32": TensorProto.FLOAT,
    "int8": TensorProto.FLOAT,
    "fp16": TensorProto.FLOAT16,
}


def write_search(vocabulary_size: int, precision: Precision, file: Path) -> None:
    """Export what finds the best tokens of each row.

    From `LOGITS` [rows, vocabulary_size], `COUNT`, int64 [1], at most the vocabulary's size, and `ASKED_IDS`, int64
    [rows, asked], to `BEST_IDS`, int64 [rows, count], the best first, `BEST_LOG_PROBABILITIES`, float [rows, count],
    and `ASKED_LOG_PROBABILITIES`, float [rows, asked]: natural logarithms.

    Args:
        vocabulary_size: of the target.
        precision: of the bundle.
        file: to write.
    """
    size = block_size(vocabulary_size)
    missing = -vocabulary_size % size
    blocks = (vocabulary_size + missing) // size
    constants = {
        "parts": [-1, blocks, size],
        "in_block": [2],
        "blocks": [blocks],
        "last": [-1],
        "all": [0, -1],
        "size": [size],
    }
    logits, nodes = LOGITS, []
    if precision == "fp16":
        nodes.append(helper.make_node("Cast", [logits], ["logits_fp32"], to=TensorProto.FLOAT))
        logits = "logits_fp32"
    initializers = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in constants.items()]
    if missing:
        initializers.append(numpy_helper.from_array(np.array([0, 0, 0, missing], np.int64), "padding"))
        initializers.append(numpy_helper.from_array(np.array(-np.inf, np.float32), "never"))
        nodes.append(helper.make_node("Pad", [logits, "padding", "never"], ["padded"]))
        logits = "padded"
    nodes += [
        helper.make_node("Reshape", [logits, "parts"], ["in_blocks"]),
        helper.make_node("ReduceMax", ["in_blocks", "in_block"], ["best_of_block"], keepdims=0),
        helper.make_node("Min", [COUNT, "blocks"], ["block_count"]),
        helper.make_node("TopK", ["best_of_block", "block_count"], ["block_values", "block_ids"]),
        helper.make_node("Unsqueeze", ["block_ids", "last"], ["block_places"]),
        helper.make_node("GatherND", ["in_blocks", "block_places"], ["best_blocks"], batch_dims=1),
        helper.make_node("Reshape", ["best_blocks", "all"], ["candidates"]),
        helper.make_node("TopK", ["candidates", COUNT], ["values", "places"]),
        helper.make_node("Div", ["places", "size"], ["of_blocks"]),
        helper.make_node("Mul", ["of_blocks", "size"], ["before"]),
        helper.make_node("Sub", ["places", "before"], ["offsets"]),
        helper.make_node("GatherElements", ["block_ids", "of_blocks"], ["blocks_of_best"], axis=1),
        helper.make_node("Mul", ["blocks_of_best", "size"], ["starts"]),
        helper.make_node("Add", ["starts", "offsets"], [BEST_IDS]),
        helper.make_node("LogSoftmax", [logits], ["log_probabilities"], axis=-1),
        helper.make_node("GatherElements", ["log_probabilities", BEST_IDS], [BEST_LOG_PROBABILITIES], axis=1),
        helper.make_node("GatherElements", ["log_probabilities", ASKED_IDS], [ASKED_LOG_PROBABILITIES], axis=1),
    ]
    inputs = [
        helper.make_tensor_value_info(LOGITS, _TYPES[precision], ["rows", vocabulary_size]),
        helper.make_tensor_value_info(COUNT, TensorProto.INT64, [1]),
        helper.make_tensor_value_info(ASKED_IDS, TensorProto.INT64, ["rows", "asked"]),
    ]
    outputs = [
        helper.make_tensor_value_info(BEST_IDS, TensorProto.INT64, ["rows", "count"]),
        helper.make_tensor_value_info(BEST_LOG_PROBABILITIES, TensorProto.FLOAT, ["rows", "count"]),
        helper.make_tensor_value_info(ASKED_LOG_PROBABILITIES, TensorProto.FLOAT, ["rows", "asked"]),
    ]
    save_graph("search", nodes, inputs, outputs, initializers, file)
