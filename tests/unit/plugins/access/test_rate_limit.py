from hypothesis import given
from hypothesis import strategies as st

from plugins.access.rate_limit import NANOSECONDS, TokenBucket

rates = st.floats(1e-3, 1e5)
bursts = st.integers(1, 50)
pauses_ns = st.lists(st.integers(0, 3 * NANOSECONDS), max_size=60)


@given(rates, bursts)
def test_a_full_bucket_gives_its_burst_at_once_and_no_more(rate: float, burst: int) -> None:
    bucket = TokenBucket(rate, burst)
    assert [bucket.take(7) for _ in range(burst)] == [0] * burst
    assert bucket.take(7) > 0


@given(rates, bursts, pauses_ns)
def test_never_more_than_the_rate_allows_in_any_span(rate: float, burst: int, pauses: list[int]) -> None:
    bucket, now_ns, taken = TokenBucket(rate, burst), 0, []
    for pause in pauses:
        now_ns += pause
        if bucket.take(now_ns) == 0:
            taken.append(now_ns)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            allowed = burst + (taken[last] - taken[first]) * rate / NANOSECONDS
            assert last - first + 1 <= allowed + 1e-6


@given(rates, bursts, pauses_ns)
def test_who_waits_as_told_is_served_and_not_a_nanosecond_sooner(rate: float, burst: int, pauses: list[int]) -> None:
    bucket, now_ns = TokenBucket(rate, burst), 0
    for pause in pauses:
        now_ns += pause
        delay_ns = bucket.take(now_ns)
        if delay_ns:
            assert bucket.take(now_ns + delay_ns - 1) == 1
            now_ns += delay_ns
            assert bucket.take(now_ns) == 0


@given(rates, bursts, st.integers(1, 20))
def test_being_refused_costs_nothing(rate: float, burst: int, tries: int) -> None:
    bucket = TokenBucket(rate, burst)
    for _ in range(burst):
        bucket.take(0)
    assert len({bucket.take(0) for _ in range(tries)}) == 1


def test_a_pause_fills_it_up_again_but_not_above() -> None:
    bucket = TokenBucket(10, 3)
    for now_ns in (0, 100 * NANOSECONDS):
        assert [bucket.take(now_ns) for _ in range(4)] == [0, 0, 0, NANOSECONDS // 10]


def test_the_interval_is_rounded_up_so_that_the_rate_is_never_exceeded() -> None:
    bucket = TokenBucket(3, 1)
    assert bucket.take(0) == 0
    assert bucket.take(0) == 333_333_334
