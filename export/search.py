"""The graph that finds the best tokens of each row of logits, with log-probabilities of these and other tokens.

It has no weights. As in `export.argmax`, a row is cut into blocks: the best `count` values lie in the `count` blocks
with the largest maxima, so TopK examines few values. 32 rows of 8,000, the best 8: 0.2 ms of a core, with LogSoftmax;
ReduceLogSumExp in its place takes six times as long.

A row's results depend on this row alone, and the results for a small count are the first of those for a larger one: of
equal values TopK gives the earlier first, and blocks are in the order of their maxima.
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto

from dragoman.bundle import (
    ASKED_IDS,
    ASKED_LOG_PROBABILITIES,
    BEST_IDS,
    BEST_LOG_PROBABILITIES,
    COUNT,
    LOGITS,
    Precision,
)
from export.argmax import in_blocks
from export.graph import Graph


def write_search(vocabulary_size: int, precision: Precision, file: Path) -> None:
    """Write the graph that finds the best tokens of each row.

    From `LOGITS` [rows, vocabulary_size], `COUNT`, int64 [1], at most the vocabulary's size, and `ASKED_IDS`, int64
    [rows, asked], to `BEST_IDS`, int64 [rows, count], the best first, `BEST_LOG_PROBABILITIES`, float [rows, count],
    and `ASKED_LOG_PROBABILITIES`, float [rows, asked]: natural logarithms.

    Args:
        vocabulary_size: the size of the target vocabulary.
        precision: the precision of the bundle.
        file: the file to write.
    """
    graph = Graph()
    half = precision == "fp16"
    logits = graph.input(LOGITS, np.float16 if half else np.float32, ["rows", vocabulary_size])
    logits = graph.node("Cast", logits, to=TensorProto.FLOAT) if half else logits
    count = graph.input(COUNT, np.int64, [1])
    asked = graph.input(ASKED_IDS, np.int64, ["rows", "asked"])
    blocks, number, size = in_blocks(graph, logits, vocabulary_size)
    block_size = graph.constant([size])
    largest = graph.node("ReduceMax", blocks, graph.constant([2]), keepdims=0)
    best = _at_most(graph, count, number)
    _, block_ids = graph.nodes("TopK", largest, best, names=["block_values", "block_ids"])
    places = graph.node("Unsqueeze", block_ids, graph.constant([-1]))
    best_blocks = graph.node("GatherND", blocks, places, batch_dims=1)
    candidates = graph.node("Reshape", best_blocks, graph.constant([0, -1]))
    _, found = graph.nodes("TopK", candidates, count, names=["values", "places"])
    of_blocks = graph.node("Div", found, block_size)
    offsets = graph.node("Sub", found, graph.node("Mul", of_blocks, block_size))
    starts = graph.node("Mul", graph.node("GatherElements", block_ids, of_blocks, axis=1), block_size)
    graph.node("Add", starts, offsets, name=BEST_IDS)
    probabilities = graph.node("LogSoftmax", logits, axis=-1)
    graph.node("GatherElements", probabilities, BEST_IDS, name=BEST_LOG_PROBABILITIES, axis=1)
    graph.node("GatherElements", probabilities, asked, name=ASKED_LOG_PROBABILITIES, axis=1)
    graph.output(BEST_IDS, np.int64, ["rows", "count"])
    graph.output(BEST_LOG_PROBABILITIES, np.float32, ["rows", "count"])
    graph.output(ASKED_LOG_PROBABILITIES, np.float32, ["rows", "asked"])
    graph.save(file)


def _at_most(graph: Graph, count: str, most: int) -> str:
    """Limit a count, int64 [1]. As a length, since with a GPU lengths stay on the host, where `TopK` needs it."""
    first = graph.node("Slice", graph.constant(np.zeros(most, np.int64)), graph.constant([0]), count)
    return graph.node("Shape", first)
