"""The simulation beside what queueing theory knows, and its books."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench.load.arrivals import poisson_arrivals
from bench.replicas.balancing import BALANCERS
from bench.replicas.replica import Call, Kind
from bench.replicas.simulation import Ends, simulate

Works = Callable[[int], NDArray[np.float64]]


def alike(count: int) -> NDArray[np.float64]:
    return np.ones(count)


def exponential(count: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).exponential(size=count)


def kind(*, slots: int, per_second: tuple[float, ...] = (1.0,), max_delay_s: float = 0.0) -> Kind:
    return Kind(per_second, slots, max_delay_s, refusal_s=0.01)


def run(one: Kind, load: float, works: Works, *, seconds: float, replicas: int = 1, name: str = "round robin") -> Ends:
    due_s = poisson_arrivals(load * one.peak * replicas, seconds, seed=3)
    calls = [Call(number, work, 10) for number, work in enumerate(works(len(due_s)).tolist())]
    return simulate(due_s, calls, [one] * replicas, BALANCERS[name](replicas, random.Random(4)))


FIRST_COME = kind(slots=1)
SHARED = kind(slots=10**9)


@pytest.mark.parametrize(
    ("one", "works", "mean_s"),
    [
        (FIRST_COME, alike, 1.5),  # M/D/1: 1 + load / 2(1 - load)
        (FIRST_COME, exponential, 2.0),  # M/M/1: 1 / (1 - load)
        (SHARED, alike, 2.0),  # M/G/1 with processor sharing: the same, whatever the works
        (SHARED, exponential, 2.0),
    ],
)
def test_the_mean_latency_is_that_of_theory(one: Kind, works: Works, mean_s: float) -> None:
    ends = run(one, 0.5, works, seconds=80_000)
    assert np.mean(ends.ended_s - ends.due_s) == pytest.approx(mean_s, rel=0.03)


def test_a_replica_that_does_more_in_company_has_the_latency_of_m_m_c() -> None:
    """With one core for each of its slots it is M/M/2: at a load of one half, 4/3 of a call's own time."""
    ends = run(kind(slots=2, per_second=(1.0, 2.0)), 0.5, exponential, seconds=40_000)
    assert np.mean(ends.ended_s - ends.due_s) == pytest.approx(4 / 3, rel=0.03)


def test_a_replica_that_does_as_much_alone_is_busy_for_its_load() -> None:
    assert SHARED._replace(slots=4).busy(0.3) == pytest.approx(0.3)


def test_one_that_does_more_in_company_is_busier_than_its_load() -> None:
    """M/M/2 at a load of one half has no call for a third of the time."""
    assert kind(slots=2, per_second=(1.0, 2.0)).busy(0.5) == pytest.approx(2 / 3)


def test_refusals_keep_the_wait_near_what_is_promised() -> None:
    one = kind(slots=4, per_second=(100.0,), max_delay_s=0.5)._replace(refusal_s=0.0)
    ends = run(one, 3, alike, seconds=20)
    late = ends.due_in(5, 20)
    assert late.refused.mean() == pytest.approx(2 / 3, abs=0.02)
    assert 0.4 < late.percentile_s(50) < 0.6
    assert ends.answers_in(5, 20) / 15 == pytest.approx(100, rel=0.02)


def test_refusing_takes_the_core_from_the_calls_that_run() -> None:
    one = kind(slots=4, per_second=(100.0,), max_delay_s=0.5)._replace(refusal_s=0.002)
    ends = run(one, 3, alike, seconds=20)
    late = ends.due_in(5, 20)
    answered = ends.answers_in(5, 20) / 15
    assert answered / 100 + 0.002 * late.refused.sum() / 15 == pytest.approx(1, rel=0.02)


def test_refusals_take_half_of_the_core_at_most() -> None:
    one = kind(slots=4, per_second=(100.0,), max_delay_s=0.5)._replace(refusal_s=0.1)
    ends = run(one, 3, alike, seconds=20)
    assert ends.answers_in(5, 20) / 15 == pytest.approx(50, rel=0.02)


@given(
    name=st.sampled_from(sorted(BALANCERS)),
    replicas=st.integers(1, 5),
    load=st.floats(0.1, 4),
    slots=st.integers(1, 8),
    max_delay_s=st.sampled_from([0.0, 0.05, 1.0]),
)
def test_no_call_is_lost_and_none_ends_before_it_can(
    name: str, replicas: int, load: float, slots: int, max_delay_s: float
) -> None:
    one = kind(slots=slots, per_second=(100.0, 150.0, 180.0), max_delay_s=max_delay_s)
    ends = run(one, load, alike, seconds=1, replicas=replicas, name=name)
    answered = ~ends.refused
    assert ends.answers_in(0, np.inf) + ends.refused.sum() == len(ends.due_s)
    assert not ends.refused.any() or max_delay_s
    # Alone, a call takes 1/100 s; never less, for others only take their part.
    assert (ends.ended_s[answered] - ends.due_s[answered] >= 0.01 - 1e-9).all()


def test_equal_seeds_give_equal_ends() -> None:
    one, other = (run(SHARED, 0.5, alike, seconds=100, replicas=3, name="two choices") for _ in range(2))
    assert np.array_equal(one.ended_s, other.ended_s)
