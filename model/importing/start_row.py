"""The row of zeros for the token from which Marian's decoder starts, and which no vocabulary contains.

Marian starts decoding with zeros in place of an embedding. As in Hugging Face's conversion of such a model, a row of
zeros is added after the pieces, and banned from the output.
"""

import numpy as np

from model.arrays import Array


def with_start(table: Array) -> Array:
    """Add zeros after the last row of an embedding, an output weight or its bias."""
    return np.concatenate([table, np.zeros_like(table[:1])])


def shape_with_start(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Give the shape of the result of `with_start`."""
    return shape[0] + 1, *shape[1:]
