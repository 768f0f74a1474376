import math

from hypothesis import given
from hypothesis import strategies as st

from bench.load.search import highest_rate


@given(
    truth=st.floats(1.0, 1e5),
    guess=st.floats(1.0, 1e5),
    growth=st.floats(1.05, 3.0),
    precision=st.floats(0.01, 0.5),
)
def test_highest_rate_is_just_below_the_truth(truth: float, guess: float, growth: float, precision: float) -> None:
    found = highest_rate(lambda rate: rate <= truth, guess, growth=growth, precision=precision)
    assert found <= truth
    assert truth <= found * (1 + precision) * (1 + 1e-12)


def test_a_good_guess_takes_few_loads() -> None:
    tried = []

    def holds(rate: float) -> bool:
        tried.append(rate)
        return rate <= 103.0

    highest_rate(holds, 100.0, growth=1.12, precision=0.04)
    assert len(tried) <= 4
    assert all(math.isfinite(rate) for rate in tried)
