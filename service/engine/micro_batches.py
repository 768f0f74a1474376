"""The choice of the segments that run through the encoder together.

Segments of one run share its fixed cost, but need padding. The cut into runs with the least total is found exactly.
"""

from collections.abc import Sequence


def micro_batches(lengths: Sequence[int], run_tokens: int, run_cost: int) -> list[list[int]]:
    """Cut segments, in order of length, into runs whose padded tokens and fixed costs are least in total.

    Args:
        lengths: source tokens of each segment.
        run_tokens: most padded source tokens of a run of several segments.
        run_cost: fixed cost of a run, in addition to its tokens, in tokens.

    Returns:
        Indices of the segments of each run.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    padded = len(lengths) * max(lengths, default=0)
    if padded <= run_tokens and padded - sum(lengths) <= run_cost:  # another run would cost no less than the padding
        return [order] if order else []
    # least[n]: the least cost of the n shortest segments; starts[n]: where their last run begins.
    least, starts = [0], [0]
    for stop in range(1, len(order) + 1):
        longest = lengths[order[stop - 1]]
        most = max(1, run_tokens // longest)
        costs = [
            (least[start] + run_cost + (stop - start) * longest, start)
            for start in range(stop - 1, max(stop - most, 0) - 1, -1)
        ]
        cost, start = min(costs)
        least.append(cost)
        starts.append(start)
    runs = []
    stop = len(order)
    while stop:
        runs.append(order[starts[stop] : stop])
        stop = starts[stop]
    return runs[::-1]
