"""The search for the highest rate that a server holds."""

import math
from collections.abc import Callable


def highest_rate(holds: Callable[[float], bool], guess: float, *, growth: float, precision: float) -> float:
    """Find the highest rate that holds, by bisection on a logarithmic scale.

    Args:
        growth: by which the bracket is widened, above 1.
        precision: the result is below the truth by at most this share of it.

    Returns:
        A rate that held.
    """
    low = high = guess
    if holds(guess):
        while holds(high := low * growth):
            low = high
    else:
        while not holds(low := high / growth):
            high = low
    while high / low > 1 + precision:
        middle = math.sqrt(low * high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
