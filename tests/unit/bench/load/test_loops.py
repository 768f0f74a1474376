import asyncio
import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.loops import ClosedLoop, OpenLoop, poisson_arrivals

rates = st.floats(min_value=1e-3, max_value=1e3)
durations = st.floats(min_value=1e-3, max_value=10.0)
seeds = st.integers(min_value=0, max_value=2**63)


class Sender:
    """Answers after `answer_s` of its own clock; knows what was sent and how many requests were unanswered at once."""

    def __init__(self, answer_s: float = 0.0) -> None:
        self.due_s: list[float] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self._answer_s = answer_s
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    async def send(self, due_s: float) -> bool:
        self.due_s.append(due_s)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        await asyncio.sleep(0)
        self._now_s += self._answer_s
        self.in_flight -= 1
        return True


def wall_clock() -> Callable[[], float]:
    """Seconds from now on."""
    start_s = time.perf_counter()
    return lambda: time.perf_counter() - start_s


async def test_open_loop_sends_at_every_arrival_and_waits_for_the_answers() -> None:
    sender = Sender()
    arrivals_s = [0.0, 0.001, 0.001, 0.01]
    await OpenLoop(np.array(arrivals_s)).run(sender.send, wall_clock())
    assert sender.due_s == arrivals_s
    assert sender.in_flight == 0


async def test_open_loop_does_not_wait_for_an_answer_before_the_next_request() -> None:
    answered = asyncio.Event()
    due: list[float] = []

    async def send(due_s: float) -> bool:
        due.append(due_s)
        if len(due) == 5:
            answered.set()
        return await answered.wait()

    async with asyncio.timeout(60):
        await OpenLoop(np.arange(5) * 1e-3).run(send, wall_clock())
    assert len(due) == 5


async def test_open_loop_that_is_late_moves_no_arrival() -> None:
    sender = Sender()
    asyncio.get_running_loop().call_soon(time.sleep, 0.05)
    arrivals_s = np.linspace(0.0, 0.04, 20)
    await OpenLoop(arrivals_s).run(sender.send, wall_clock())
    assert sender.due_s == arrivals_s.tolist()


def test_offered_rate_is_of_the_arrivals_in_the_interval() -> None:
    loop = OpenLoop(np.array([0.5, 1.0, 1.5, 2.0, 3.0]))
    assert loop.offered_rate(1.0, 3.0) == 1.5
    assert loop.offered_rate(1.0, 1.0) == 0.0


@pytest.mark.parametrize(("concurrency", "requests"), [(1, 5), (4, 10), (8, 3)])
async def test_closed_loop_sends_so_many_requests_so_many_at_once(concurrency: int, requests: int) -> None:
    sender = Sender(answer_s=0.001)
    loop = ClosedLoop(concurrency, warmup_s=0.0, end_s=math.inf, requests=requests)
    await loop.run(sender.send, sender.now_s)
    assert len(sender.due_s) == requests
    assert sender.max_in_flight == min(concurrency, requests)


async def test_closed_loop_does_not_count_the_requests_of_the_warm_up() -> None:
    sender = Sender(answer_s=0.001)
    await ClosedLoop(2, warmup_s=0.03, end_s=math.inf, requests=7).run(sender.send, sender.now_s)
    assert sum(due_s >= 0.03 for due_s in sender.due_s) == 7
    assert min(sender.due_s) < 0.03


async def test_closed_loop_sends_nothing_after_its_end() -> None:
    sender = Sender(answer_s=0.001)
    await ClosedLoop(2, warmup_s=0.01, end_s=0.03, requests=None).run(sender.send, sender.now_s)
    assert max(sender.due_s) < 0.03
    assert sender.in_flight == 0


async def test_closed_loop_does_not_rush_at_a_server_that_refuses() -> None:
    refused_s: list[float] = []

    async def refuse(due_s: float) -> bool:
        refused_s.append(due_s)
        return False

    await ClosedLoop(1, warmup_s=0.0, end_s=0.2, requests=None).run(refuse, wall_clock())
    assert len(refused_s) <= 5


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
