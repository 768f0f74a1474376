"""Calls on replicas, one event after another. Pure."""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.replicas.balancing import Balancer
from bench.replicas.replica import Call, Kind, Replica


class Ends(NamedTuple):
    """What became of calls.

    Attributes:
        due_s: [calls] when each came, ascending.
        ended_s: [calls] when it was answered; NaN: it was refused.
    """

    due_s: NDArray[np.float64]
    ended_s: NDArray[np.float64]

    @property
    def refused(self) -> NDArray[np.bool_]:
        """[calls] which were refused."""
        return np.isnan(self.ended_s)

    def due_in(self, from_s: float, to_s: float) -> "Ends":
        """Take the calls that came in a time."""
        rows = (self.due_s >= from_s) & (self.due_s < to_s)
        return Ends(self.due_s[rows], self.ended_s[rows])

    def answers_in(self, from_s: float, to_s: float) -> int:
        """Count the answers that came in a time, whenever the calls did."""
        return int(((self.ended_s >= from_s) & (self.ended_s < to_s)).sum())

    def percentile_s(self, percent: float) -> float:
        """Return a percentile of the latency of answered calls; NaN where there is none."""
        latency_s = (self.ended_s - self.due_s)[~self.refused]
        return float(np.percentile(latency_s, percent)) if latency_s.size else math.nan


def simulate(due_s: NDArray[np.float64], calls: Sequence[Call], kinds: Sequence[Kind], balancer: Balancer) -> Ends:
    """Follow all calls to their ends.

    Args:
        due_s: [calls] when each comes, ascending.
        calls: one for each.
        kinds: [replicas] what each is.
        balancer: chooses among them.
    """
    fleet = [Replica(kind) for kind in kinds]
    open_calls = [0] * len(fleet)
    ended_s = np.full(len(due_s), np.nan)
    # When each replica ends its next call, as far as was known: an entry counts if the replica has not changed since.
    # Change 0 is the answer of a refusal.
    ends: list[tuple[float, int, int]] = []
    changes = [0] * len(fleet)

    def plan(number: int) -> None:
        changes[number] += 1
        if (end_s := fleet[number].next_end_s()) < math.inf:
            heapq.heappush(ends, (end_s, number, changes[number]))

    def end_until(now_s: float) -> None:
        while ends and ends[0][0] <= now_s:
            end_s, number, change = heapq.heappop(ends)
            if change == 0:
                open_calls[number] -= 1
            elif change == changes[number]:
                ended_s[fleet[number].end(end_s)] = end_s
                open_calls[number] -= 1
                plan(number)

    for at_s, call in zip(due_s.tolist(), calls, strict=True):
        end_until(at_s)
        number = balancer.choose(open_calls)
        open_calls[number] += 1
        refused_s = fleet[number].offer(call, at_s)
        if refused_s is not None:
            heapq.heappush(ends, (refused_s, number, 0))
        plan(number)
    end_until(math.inf)
    return Ends(due_s, ended_s)
