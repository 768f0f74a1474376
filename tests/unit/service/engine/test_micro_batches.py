from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.engine.micro_batches import micro_batches

TOKENS, COST = 512, 4


def cost(lengths: list[int], runs: list[list[int]]) -> int:
    return sum(COST + len(run) * max(lengths[index] for index in run) for run in runs)


def cuts(order: list[int]) -> Iterator[list[list[int]]]:
    """Every way to cut a row into parts."""
    if not order:
        yield []
    for stop in range(1, len(order) + 1):
        for rest in cuts(order[stop:]):
            yield [order[:stop], *rest]


@given(st.lists(st.integers(1, 600), max_size=40))
def test_every_segment_once_in_order_of_length_within_the_limit(lengths: list[int]) -> None:
    runs = micro_batches(lengths, TOKENS, COST)
    assert sorted(index for run in runs for index in run) == list(range(len(lengths)))
    flat = [lengths[index] for run in runs for index in run]
    assert flat == sorted(lengths)
    for run in runs:
        assert len(run) == 1 or len(run) * lengths[run[-1]] <= TOKENS


@given(st.lists(st.integers(1, 60) | st.integers(200, 300), max_size=8))
def test_no_cut_is_cheaper(lengths: list[int]) -> None:
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    allowed = [cut for cut in cuts(order) if all(len(run) == 1 or len(run) * lengths[run[-1]] <= TOKENS for run in cut)]
    assert cost(lengths, micro_batches(lengths, TOKENS, COST)) == min(cost(lengths, cut) for cut in allowed)


def test_like_lengths_share_a_run_and_others_do_not() -> None:
    assert micro_batches([9, 30, 10, 31, 9], TOKENS, COST) == [[0, 4, 2], [1, 3]]
    assert micro_batches([], TOKENS, COST) == []


def test_a_run_ends_at_the_limit() -> None:
    runs = micro_batches([TOKENS // 4] * 9, TOKENS, COST)
    assert sorted(map(len, runs)) == [1, 4, 4]
    assert all(first <= second for first, second in pairwise(sorted(index for run in runs for index in run)))


def test_a_run_that_costs_much_takes_all_that_it_can() -> None:
    assert micro_batches([9, 90, 10, 31, 9], TOKENS, TOKENS) == [[0, 4, 2, 3, 1]]
