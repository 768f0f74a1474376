"""What is simulated: a steady load and a storm, on fleets of some sizes, under each way of balancing. Pure."""

import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.load.arrivals import poisson_arrivals
from bench.overload.phases import arrivals, in_a_row
from bench.replicas.balancing import BALANCERS
from bench.replicas.measure import SLOTS, Measured
from bench.replicas.replica import Call, Kind
from bench.replicas.simulation import Ends, simulate

STEADY_SHARE: Final = 0.8
SLOW_SHARE: Final = 0.1
STORM_FACTOR: Final = 3.0
MAX_DELAY_S: Final = 1.0  # the server's default
_WARMUP_S: Final = 0.25
_STEADY_S: Final = 30.0
_STEADY_CALLS: Final = 100_000  # of large fleets, which need less time for as good a percentile
_LEAST_STEADY_S: Final = 2.0
_FILLING_S: Final = 3.0  # until as much waits at slow replicas as ever will
_STORM_FILLING_S: Final = 0.75
_STORM_S: Final = 0.75  # after that


class Steady(NamedTuple):
    """A fleet at 80 % of what it can do.

    Attributes:
        replicas: of the fleet.
        slow: how many of them do half as much as the others.
        balancer: by its name.
        calls: that are counted.
        refused: of them, as a share.
        p50_s: of the latency.
        p95_s: of the latency.
    """

    replicas: int
    slow: int
    balancer: str
    calls: int
    refused: float
    p50_s: float
    p95_s: float


class Storm(NamedTuple):
    """A fleet that is asked for three times what it can do.

    Attributes:
        replicas: of the fleet.
        balancer: by its name.
        calls: that came in the storm, once as much waited as ever did.
        goodput: answers a second, as a share of what the fleet can do.
        refused: of the calls, as a share.
        p95_s: of the latency of those that were answered.
    """

    replicas: int
    balancer: str
    calls: int
    goodput: float
    refused: float
    p95_s: float


def kind_of(measured: Measured) -> Kind:
    """Make a replica of what was measured: rates between two measured occupancies lie on a line."""
    inside = [each.inside for each in measured.occupancies]
    rates = [1 / each.cost_s for each in measured.occupancies]
    per_second = np.interp(np.arange(1, SLOTS + 1), inside, rates).tolist()
    return Kind(tuple(per_second), SLOTS, MAX_DELAY_S, measured.refusal_s)


def steady(measured: Measured, fleets: Sequence[int], seed: int, slow_share: float = 0.0) -> Iterator[Steady]:
    """Simulate 80 % of the peak.

    Args:
        measured: what a replica is made of.
        fleets: numbers of replicas.
        seed: of arrivals, sentences and choices.
        slow_share: of each fleet, rounded down, that does half as much, as on a core that others use too.
    """
    kind = kind_of(measured)
    for replicas in fleets:
        slow = int(slow_share * replicas)
        kinds = [_half(kind)] * slow + [kind] * (replicas - slow)
        rate = STEADY_SHARE * sum(each.peak for each in kinds)
        seconds = max(_LEAST_STEADY_S, min(_STEADY_S, _STEADY_CALLS / rate))
        lead_s = _FILLING_S if slow else _WARMUP_S
        due_s = poisson_arrivals(rate, lead_s + seconds, seed)
        for name, ends in _under_each(measured, due_s, kinds, seed):
            counted = ends.due_in(lead_s, lead_s + seconds)
            percentiles_s = counted.percentile_s(50), counted.percentile_s(95)
            yield Steady(replicas, slow, name, len(counted.due_s), float(counted.refused.mean()), *percentiles_s)


def storms(measured: Measured, fleets: Sequence[int], seed: int) -> Iterator[Storm]:
    """Simulate three times the peak, after a while at 80 %; arguments as of `steady`."""
    kind = kind_of(measured)
    for replicas in fleets:
        peak = kind.peak * replicas
        wild = STORM_FACTOR * peak
        phases = in_a_row(
            [("before", STEADY_SHARE * peak, _WARMUP_S), ("filling", wild, _STORM_FILLING_S), ("storm", wild, _STORM_S)]
        )
        storm = phases[-1]
        for name, ends in _under_each(measured, arrivals(phases, seed), [kind] * replicas, seed):
            came = ends.due_in(storm.from_s, storm.to_s)
            goodput = ends.answers_in(storm.from_s, storm.to_s) / storm.duration_s / peak
            yield Storm(replicas, name, len(came.due_s), goodput, float(came.refused.mean()), came.percentile_s(95))


def _half(kind: Kind) -> Kind:
    return kind._replace(per_second=tuple(rate / 2 for rate in kind.per_second), refusal_s=2 * kind.refusal_s)


def _under_each(
    measured: Measured, due_s: NDArray[np.float64], kinds: Sequence[Kind], seed: int
) -> Iterator[tuple[str, Ends]]:
    """Simulate the same calls under each way of balancing."""
    calls = _calls(measured, len(due_s), seed)
    for name, make in BALANCERS.items():
        yield name, simulate(due_s, calls, kinds, make(len(kinds), random.Random(seed)))


def _calls(measured: Measured, count: int, seed: int) -> list[Call]:
    """Draw sentences from those that were measured."""
    mean_s = sum(each.alone_s for each in measured.sentences) / len(measured.sentences)
    drawn = np.random.default_rng(seed).integers(len(measured.sentences), size=count).tolist()
    sentences = [(each.alone_s / mean_s, each.source_tokens) for each in measured.sentences]
    return [Call(number, *sentences[which]) for number, which in enumerate(drawn)]
