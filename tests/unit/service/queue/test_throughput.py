import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.queue.admission import Throughput


def measured(tokens_per_s: float, seconds: int = 10) -> Throughput:
    rate = Throughput()
    rate.start(0, 0.0)
    for second in range(1, seconds + 1):
        rate.finish(int(tokens_per_s), float(second))
    return rate


def test_nothing_is_known_before_anything_was_finished() -> None:
    rate = Throughput()
    assert rate.per_second(1.0) is None
    rate.start(0, 1.0)
    assert rate.runs
    assert rate.per_second(2.0) is None


def test_nothing_is_known_before_as_much_was_finished_as_was_in_progress() -> None:
    rate = Throughput()
    rate.start(100, 0.0)
    rate.finish(99, 1.0)
    assert rate.per_second(1.0) is None
    rate.finish(1, 1.0)
    assert rate.per_second(1.0) == pytest.approx(100, rel=0.01)


def test_a_busy_time_that_was_too_short_is_forgotten() -> None:
    rate = Throughput()
    rate.start(100, 0.0)
    rate.finish(99, 1000.0)
    rate.stop(1000.0)
    rate.start(50, 2000.0)
    rate.finish(50, 2001.0)
    assert rate.per_second(2001.0) == pytest.approx(50)


def test_a_busy_time_in_which_nothing_was_finished_teaches_nothing() -> None:
    rate = Throughput()
    rate.start(0, 0.0)
    rate.stop(1.0)
    rate.start(10, 2.0)
    rate.finish(5, 3.0)
    assert rate.per_second(3.0) is None


@given(idle_s=st.floats(0.0, 30.0), tokens=st.integers(0, 1000))
def test_what_happens_while_the_clock_stands_does_not_count(idle_s: float, tokens: int) -> None:
    rate = measured(200)
    rate.stop(10.0)
    rate.finish(tokens, 10.0 + idle_s / 2)
    assert not rate.runs
    assert rate.per_second(10.0 + idle_s) == pytest.approx(200)
    rate.start(10**6, 10.0 + idle_s)
    assert rate.per_second(10.0 + idle_s) == pytest.approx(200)


def test_a_stall_is_not_held_against_the_engine_for_ever() -> None:
    rate = measured(1000)
    rate.stop(70.0)  # those who waited have given up
    assert (rate.per_second(70.0) or 0.0) < 1
    assert rate.per_second(101.0) is None
    rate.start(100, 102.0)
    assert rate.per_second(102.5) is None
    rate.finish(500, 102.5)
    assert rate.per_second(102.5) == pytest.approx(1000)


def test_a_slower_engine_shows() -> None:
    rate = measured(1000)
    for second in range(11, 17):
        rate.finish(100, float(second))
    assert 100 < (rate.per_second(16.0) or 0.0) < 160


def test_a_stall_shows_before_it_ends() -> None:
    rate = measured(1000)
    assert (rate.per_second(12.0) or 0.0) < 500
    assert rate.per_second(10.0) == pytest.approx(1000)
