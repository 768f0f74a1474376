"""How memory changes while work is done: by how much for an amount of work, and by which share in a time. Pure."""

from collections.abc import Sequence

import numpy as np

from bench.memory.process import Resident


def settled(work: Sequence[float]) -> int:
    """Return the place of the first sample after the first tenth of the work: by then all caches have their size.

    Args:
        work: done at each sample, ascending, at least one.
    """
    return int(np.searchsorted(work, work[-1] / 10))


def growth(work: Sequence[float], sizes: Sequence[float], per: float) -> float | None:
    """Fit a line through the samples after the first tenth of the work.

    Args:
        work: done at each sample, ascending.
        sizes: at each sample, in any unit.
        per: an amount of work.

    Returns:
        By how much sizes grow for that amount of work; None where there are not two samples.
    """
    if len(work) < 2 or len(work) - (start := settled(work)) < 2:
        return None
    return float(np.polyfit(work[start:], sizes[start:], 1)[0]) * per


def share_grown(seen: Sequence[Resident], from_s: float, to_s: float) -> float | None:
    """Return by which share memory grew in a time, once it had settled.

    The queue fills up first, so the second quarter of the time is held against the last one, the mean of each.

    Args:
        seen: moments, in order.
        from_s: when the time begins.
        to_s: when it ends.

    Returns:
        0.01 for one hundredth; None where a quarter was not seen.
    """
    quarter_s = (to_s - from_s) / 4
    quarters = [
        [moment.mib for moment in seen if begin_s <= moment.at_s < begin_s + quarter_s]
        for begin_s in (from_s + quarter_s, to_s - quarter_s)
    ]
    if not all(quarters):
        return None
    before, after = (float(np.mean(mib)) for mib in quarters)
    return after / before - 1
