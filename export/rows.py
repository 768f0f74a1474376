"""Two small graphs that keep a decode batch in a device's memory: a server has no other way to work there.

Both read and write what they are bound to, so that nothing passes through the host.
"""

from pathlib import Path

import numpy as np

from dragoman.bundle import (
    BYTES,
    COPIED,
    MEMORY,
    PADDING,
    SLOT_ROWS,
    SOURCE_ROWS,
    Precision,
    memory_names,
    present_name,
)
from export.graph import Graph
from export.products import KEY_VALUE_TYPES
from model.config import TransformerConfig


def write_place(config: TransformerConfig, precision: Precision, file: Path) -> None:
    """Write what lays the encoder memory of some sources out as the decoder reads it, behind each source zeros.

    From `MEMORY` [batch, source, decoder_layers * 2 * heads * head_dim], `SOURCE_ROWS`, int64 [count], which rows of
    it, `SLOT_ROWS`, int64 [count, 1, 1, 1], where each goes, no two to the same place, and `PADDING`, int64 [6], how
    many zeros to put before and behind each dimension, to the rows of `memory_names`, each [slots, heads, source and
    padding, head_dim]. They are outputs too, see `present_name`: the same buffers, written in place.

    ScatterElements and not ScatterND: for that a GPU has one thread a row, which took 24 ms.

    Args:
        config: of the model.
        precision: of the bundle.
        file: to write.
    """
    graph, dtype, names = Graph(), KEY_VALUE_TYPES[precision], memory_names(config.decoder_layers)
    heads, head_dim = config.decoder_head_count, config.head_dim
    memory = graph.input(MEMORY, dtype, ["batch", "source", len(names) * heads * head_dim])
    rows = graph.node("Gather", memory, graph.input(SOURCE_ROWS, np.int64, ["count"]), axis=0)
    padded = graph.node("Pad", rows, graph.input(PADDING, np.int64, [6]))
    parts = graph.node("Reshape", padded, graph.constant([0, 0, len(names), heads, head_dim]))
    parts = graph.node("Transpose", parts, perm=[2, 0, 3, 1, 4])
    slots, first = graph.input(SLOT_ROWS, np.int64, ["count", 1, 1, 1]), graph.constant([0])
    split = graph.nodes("Split", parts, names=[f"placed_{name}" for name in names], axis=0, num_outputs=len(names))
    placed = [graph.node("Squeeze", part, first) for part in split]
    rows_of = graph.node("Expand", slots, graph.node("Shape", placed[0]))
    for name, part in zip(names, placed, strict=True):
        buffer = graph.input(name, dtype, ["slots", heads, "source_capacity", head_dim])
        graph.node("ScatterElements", buffer, rows_of, part, name=present_name(name), axis=0)
        graph.output(present_name(name), dtype, ["slots", heads, "source_capacity", head_dim])
    graph.save(file)


def write_copy(file: Path) -> None:
    """Write what copies `BYTES` to `COPIED`, int8 [size]: bytes of whatever type."""
    graph = Graph()
    graph.node("Identity", graph.input(BYTES, np.int8, ["size"]), name=COPIED)
    graph.output(COPIED, np.int8, ["size"])
    graph.save(file)
