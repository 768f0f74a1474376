import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.queue.admission import DecayingRatio

AMOUNTS = st.floats(0.01, 1e3)


def test_nothing_seen_is_no_ratio() -> None:
    assert DecayingRatio(2.0).value() is None


@given(memory=AMOUNTS, rate=st.floats(0.0, 1e6), intervals=st.lists(AMOUNTS, min_size=1, max_size=20))
def test_what_is_always_the_same_is_the_ratio_however_it_is_cut(
    memory: float, rate: float, intervals: list[float]
) -> None:
    ratio = DecayingRatio(memory)
    for interval in intervals:
        ratio.add(rate * interval, interval)
    assert ratio.value() == pytest.approx(rate)


@given(before=st.floats(0.0, 1e3), rate=st.floats(0.1, 1e3), first=st.floats(0.1, 10), second=st.floats(0.1, 10))
def test_an_interval_counts_the_same_in_one_piece_or_two(
    before: float, rate: float, first: float, second: float
) -> None:
    whole, halves = DecayingRatio(2.0), DecayingRatio(2.0)
    for ratio in (whole, halves):
        ratio.add(before, 1.0)
    whole.add(rate * (first + second), first + second)
    halves.add(rate * first, first)
    halves.add(rate * second, second)
    assert whole.value() == pytest.approx(halves.value())


@given(rates=st.lists(st.floats(0.0, 1e6, allow_subnormal=False), min_size=1, max_size=20))
def test_the_ratio_is_between_the_least_and_the_most_that_was_seen(rates: list[float]) -> None:
    ratio = DecayingRatio(2.0)
    for rate in rates:
        ratio.add(rate, 1.0)
    assert min(rates) * 0.999 <= (ratio.value() or 0.0) <= max(rates) * 1.001


def test_what_is_long_past_is_forgotten() -> None:
    ratio = DecayingRatio(2.0)
    ratio.add(1_000_000, 10.0)
    for _ in range(40):
        ratio.add(5, 1.0)
    assert ratio.value() == pytest.approx(5.0, abs=0.01)


def test_more_of_the_denominator_alone_lowers_it_and_leaves_no_trace() -> None:
    ratio = DecayingRatio(2.0)
    ratio.add(10, 1.0)
    assert (ratio.value(1.0) or 0.0) < 10
    assert ratio.value() == pytest.approx(10)


def test_what_takes_no_time_is_counted() -> None:
    ratio = DecayingRatio(2.0)
    ratio.add(4, 0.0)
    ratio.add(4, 2.0)
    assert (ratio.value() or 0.0) > 2
