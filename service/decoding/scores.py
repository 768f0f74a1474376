"""How probable a token was, by the logits that it was chosen from; pure."""

import math

import numpy as np
from numpy.typing import NDArray


def log_probability(logits: NDArray[np.floating], token: int) -> float:
    """Compute the natural logarithm of a token's probability, in float64: at most 0.

    Of one row alone, so that what stands in the rows beside it cannot move a bit of it.

    Args:
        logits: [vocabulary], finite, of any precision.
        token: the index of one of them.
    """
    shifted = logits.astype(np.float64)
    shifted -= shifted.max()  # of what is left, none is too large for exp, and the largest is 1
    chosen = float(shifted[token])
    return chosen - math.log(np.exp(shifted, out=shifted).sum())
