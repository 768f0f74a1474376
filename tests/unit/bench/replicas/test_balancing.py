import random
from collections import Counter
from itertools import pairwise

import pytest

from bench.replicas.balancing import BALANCERS, LeastRequests, RoundRobin, TwoChoices


def test_one_balancer_takes_them_in_turn() -> None:
    balancer = RoundRobin(3, 1, random.Random(0))
    chosen = [balancer.choose([9, 0, 0]) for _ in range(6)]
    assert chosen[:3] == chosen[3:]
    assert set(chosen) == {0, 1, 2}


def test_each_client_has_its_own_turn() -> None:
    balancer = RoundRobin(2, 64, random.Random(0))
    chosen = [balancer.choose([0, 0]) for _ in range(200)]
    assert any(one == following for one, following in pairwise(chosen))


def test_of_two_the_one_with_fewer_calls() -> None:
    balancer = TwoChoices(2, random.Random(0))
    counts = Counter(balancer.choose([5, 4]) for _ in range(4000))
    assert counts[0] / 4000 == pytest.approx(1 / 4, abs=0.03)  # where both draws are the first


def test_the_fewest_calls_and_of_equals_the_next() -> None:
    balancer = LeastRequests(4)
    assert [balancer.choose(calls) for calls in ([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1])] == [
        1,
        2,
        3,
        0,
    ]


@pytest.mark.parametrize("name", sorted(BALANCERS))
def test_all_replicas_get_calls(name: str) -> None:
    balancer = BALANCERS[name](5, random.Random(0))
    assert {balancer.choose([1] * 5) for _ in range(200)} == set(range(5))
