"""The row of zeros that stands for the token that Marian's decoder starts from, which no vocabulary has.

Marian decodes from zeros in the place of an embedding. As Hugging Face does when it converts such a model, a row of
zeros is put behind the pieces, and banned from the output.
"""

import numpy as np

from model.importing.arrays import Array


def with_start(table: Array) -> Array:
    """Put zeros behind the last row of embeddings, of an output product or of its bias."""
    return np.concatenate([table, np.zeros_like(table[:1])])


def shape_with_start(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Tell the shape of what `with_start` gives."""
    return shape[0] + 1, *shape[1:]
