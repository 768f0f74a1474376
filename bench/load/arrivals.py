"""When the requests of an open loop arrive: a Poisson process, drawn before the test starts."""

import numpy as np
from numpy.typing import NDArray


def poisson_arrivals(rate: float, duration_s: float, seed: int) -> NDArray[np.float64]:
    """Draw the arrival times of a Poisson process.

    Returns:
        [arrivals] seconds since the start, ascending; the number of arrivals is random too, and may be 0.
    """
    random = np.random.default_rng(seed)
    # Given their number, the arrivals of a Poisson process are uniform in the interval.
    count = random.poisson(rate * duration_s)
    # Below 1 times the duration can still round up to the duration itself.
    last = np.nextafter(duration_s, 0.0)
    return np.minimum(np.sort(random.random(count)) * duration_s, last)
