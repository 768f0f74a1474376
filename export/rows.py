"""Two small graphs that keep a decode batch in a device's memory: a server can copy there only by a graph.

Both read and write the buffers bound to them, so that no data passes through the host.
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
    """Write the graph that places encoder memories in the layout of the decoder, with zeros after each source.

    Inputs: `MEMORY` [batch, source, decoder_layers * 2 * heads * head_dim]; `SOURCE_ROWS`, int64 [count], its rows to
    place; `SLOT_ROWS`, int64 [count, 1, 1, 1], the different rows to place them in; `PADDING`, int64 [6], the number of
    zeros before and after each dimension. Inputs and outputs, see `present_name`, are the buffers of `memory_names`,
    each [slots, heads, source and padding, head_dim], written in place.

    ScatterElements is used, since ScatterND has one GPU thread per row, which took 24 ms.

    Args:
        config: the configuration of the model.
        precision: the precision of the bundle.
        file: the file to write.
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
    """Write the graph that copies `BYTES` to `COPIED`, int8 [size]: bytes of any type."""
    graph = Graph()
    graph.node("Identity", graph.input(BYTES, np.int8, ["size"]), name=COPIED)
    graph.output(COPIED, np.int8, ["size"])
    graph.save(file)
