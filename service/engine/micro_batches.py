"""Which segments run through the encoder together.

Together they share the cost of a run and pay for padding. The cut with the least of both, found exactly.
"""

from collections.abc import Sequence


def micro_batches(lengths: Sequence[int], run_tokens: int, run_cost: int) -> list[list[int]]:
    """Cut segments, in order of length, into runs of least padded tokens and least runs.

    Args:
        lengths: source tokens of each segment.
        run_tokens: padded source tokens of a run of several, at most.
        run_cost: of a run beside its tokens, in tokens.

    Returns:
        Indices of the segments of each run.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    padded = len(lengths) * max(lengths, default=0)
    if padded <= run_tokens and padded - sum(lengths) <= run_cost:  # no cut saves more than the padding
        return [order] if order else []
    # least[n]: the cost of the n shortest; starts[n]: where the last of their runs begins.
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
