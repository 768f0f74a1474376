import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.arrivals import poisson_arrivals

rates = st.floats(min_value=1e-3, max_value=1e3)
durations = st.floats(min_value=1e-3, max_value=10.0)
seeds = st.integers(min_value=0, max_value=2**63)


@given(rates, durations, seeds)
def test_arrivals_ascend_within_the_duration(rate: float, duration_s: float, seed: int) -> None:
    arrivals = poisson_arrivals(rate, duration_s, seed)
    assert (np.diff(arrivals) >= 0).all()
    assert ((arrivals >= 0) & (arrivals < duration_s)).all()


@given(rates, durations, seeds)
def test_equal_seeds_give_equal_arrivals(rate: float, duration_s: float, seed: int) -> None:
    arrivals = poisson_arrivals(rate, duration_s, seed)
    assert np.array_equal(arrivals, poisson_arrivals(rate, duration_s, seed))


@given(st.floats(min_value=10.0, max_value=1e3), seeds)
def test_number_of_arrivals_is_that_of_the_rate(rate: float, seed: int) -> None:
    # Seven standard deviations: no seed of a Poisson process is ever that far.
    expected = rate * 10.0
    assert abs(len(poisson_arrivals(rate, 10.0, seed)) - expected) < 7 * math.sqrt(expected)


def test_different_seeds_give_different_arrivals() -> None:
    assert not np.array_equal(poisson_arrivals(50, 1, 0)[:10], poisson_arrivals(50, 1, 1)[:10])


@pytest.mark.parametrize("gaps", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_gaps_between_arrivals_are_exponential(gaps: float) -> None:
    longer = np.diff(poisson_arrivals(1000.0, 100.0, seed=7)) > gaps / 1000.0
    assert longer.mean() == pytest.approx(math.exp(-gaps), abs=0.01)


def test_numbers_of_arrivals_vary_as_much_as_their_mean() -> None:
    counts = [len(poisson_arrivals(20.0, 5.0, seed)) for seed in range(2000)]
    assert np.var(counts) == pytest.approx(100.0, rel=0.15)
