from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.repetition import FEWEST_ROUNDS, FEWEST_TOKENS, LONGEST_PERIOD, ends_in_cycle, fewest_cycle_tokens

# Rounds of this and rounds of that, of few different tokens.
ROUNDS = st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=LONGEST_PERIOD + 1), st.integers(1, 12))
IDS = st.lists(ROUNDS, max_size=4).map(lambda parts: [token for cycle, rounds in parts for token in cycle * rounds])
PERIODS = range(1, LONGEST_PERIOD + 1)


def first_cycle(ids: Sequence[int], fewest_tokens: int) -> int | None:
    """The definition, word by word: after how many tokens there is a cycle for the first time."""
    for size in range(len(ids) + 1):
        for period in PERIODS:
            tokens = max(fewest_tokens, FEWEST_ROUNDS * period)
            if size >= tokens and all(ids[at] == ids[at - period] for at in range(size - tokens + period, size)):
                return size
    return None


def found(ids: Sequence[int], fewest_tokens: int) -> int | None:
    """After how many tokens it is found, asked after each."""
    return next((size for size in range(len(ids) + 1) if ends_in_cycle(ids[:size], fewest_tokens)), None)


@given(ids=IDS, fewest=st.integers(FEWEST_TOKENS, 50))
def test_a_cycle_is_found_at_its_token_and_nothing_else_is(ids: list[int], fewest: int) -> None:
    assert found(ids, fewest) == first_cycle(ids, fewest)


@given(before=st.lists(st.integers(100, 200), max_size=30), cycle=st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_whatever_goes_round_is_found(before: list[int], cycle: list[int]) -> None:
    tokens = found(before + cycle * 60, FEWEST_TOKENS)
    assert tokens is not None
    assert tokens <= len(before) + max(FEWEST_TOKENS, FEWEST_ROUNDS * len(cycle))


@given(st.permutations(range(60)))
def test_tokens_that_all_differ_are_no_cycle(ids: list[int]) -> None:
    assert found(ids, FEWEST_TOKENS) is None


@pytest.mark.parametrize("period", PERIODS)
def test_one_token_less_is_no_cycle(period: int) -> None:
    tokens = max(FEWEST_TOKENS, FEWEST_ROUNDS * period)
    ids = [99, *[at % period for at in range(tokens)]]
    assert not ends_in_cycle(ids[:-1])
    assert ends_in_cycle(ids)


@pytest.mark.parametrize(
    "ids",
    [
        [7] * 10,  # "ha ha ha ha ha ..."
        [1, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 5],  # "1 000 000 000 000 Mark"
        [1, 2, 3, 4, 5, 6, 7, 8] * 3,  # a refrain
        [1, 2, 3, 4, 5, 6, 7, 8, 9] * 9,  # a longer cycle than any that is looked for
    ],
    ids=["laughter", "zeros", "refrain", "long"],
)
def test_what_people_write_is_no_cycle(ids: list[int]) -> None:
    assert found(ids, FEWEST_TOKENS) is None


@given(st.permutations(range(60)))
def test_a_source_that_does_not_repeat_itself_explains_nothing(ids: list[int]) -> None:
    assert fewest_cycle_tokens(ids) == FEWEST_TOKENS


@pytest.mark.parametrize(
    ("source_ids", "tokens"),
    [
        ([], FEWEST_TOKENS),
        ([5], FEWEST_TOKENS),
        ([5, 5, 2], FEWEST_TOKENS),
        ([5] * 30 + [2], 61),
        ([9, *[5, 6] * 10, 5, 2], 43),
        ([*range(9)] * 5, FEWEST_TOKENS),
        ([5, 6] * 8 + [7] + [5] * 12, 33),
    ],
)
def test_a_source_that_repeats_itself_explains_twice_as_much(source_ids: list[int], tokens: int) -> None:
    assert fewest_cycle_tokens(source_ids) == tokens


@given(cycle=st.lists(st.integers(3, 50), min_size=1, max_size=8), rounds=st.integers(2, 16), twice=st.booleans())
def test_a_faithful_translation_is_no_cycle(cycle: list[int], rounds: int, twice: bool) -> None:
    """Token by token, or two for one."""
    source = cycle * rounds
    target = [part for token in source for part in ((token, token + 100) if twice else (token,))]
    assert found(target, fewest_cycle_tokens(source)) is None
