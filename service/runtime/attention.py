"""The attention of a step over the source tokens, computed from the scores of the decoder graph."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def attention(scores: NDArray[np.floating], heads: Sequence[int]) -> NDArray[np.float32]:
    """Compute the mean of the softmax of some heads.

    Args:
        scores: [heads, source tokens], finite, of any precision.
        heads: indices of the heads.

    Returns:
        [source tokens], which add up to 1.
    """
    chosen = scores[list(heads)].astype(np.float32)
    weights = np.exp(chosen - chosen.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean: NDArray[np.float32] = weights.mean(axis=0)
    return mean
