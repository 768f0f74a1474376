"""The two small graphs that keep a decode batch in a device's memory: a server has no other way to work there.

Both read and write what they are bound to, so that nothing passes through the host.
"""

from pathlib import Path

import numpy as np

from dragoman.bundle import BYTES, COPIED, MEMORY, PADDING, Precision, memory_names
from export.graph import Graph
from export.products import KEY_VALUE_TYPES
from model.config import TransformerConfig


def write_place(config: TransformerConfig, precision: Precision, file: Path) -> None:
    """Write what lays the encoder memory of one source out as the decoder reads it, behind the source zeros.

    From `MEMORY` [1, source, decoder_layers * 2 * heads * head_dim] and `PADDING`, int64 [6], how many zeros to put
    before and behind each dimension, to `memory_names`, each [1, heads, source and padding, head_dim].

    Args:
        config: of the model.
        precision: of the bundle.
        file: to write.
    """
    graph, dtype, names = Graph(), KEY_VALUE_TYPES[precision], memory_names(config.decoder_layers)
    heads, head_dim = config.decoder_head_count, config.head_dim
    memory = graph.input(MEMORY, dtype, [1, "source", len(names) * heads * head_dim])
    padded = graph.node("Pad", memory, graph.input(PADDING, np.int64, [6]))
    # A source has one row, so the positions may come first.
    parts = graph.node("Reshape", padded, graph.constant([-1, len(names), heads, head_dim]))
    parts = graph.node("Transpose", parts, perm=[1, 2, 0, 3])
    for name in graph.nodes("Split", parts, names=names, axis=0, num_outputs=len(names)):
        graph.output(name, dtype, [1, heads, "source_capacity", head_dim])
    graph.save(file)


def write_copy(file: Path) -> None:
    """Write what copies `BYTES` to `COPIED`, int8 [size]: bytes of whatever type."""
    graph = Graph()
    graph.node("Identity", graph.input(BYTES, np.int8, ["size"]), name=COPIED)
    graph.output(COPIED, np.int8, ["size"])
    graph.save(file)
