"""The one form of the options of a decode that give the same result, and what a hypothesis scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.options import DEFAULT_DECODING, Decoding, Sampling

SIZES = st.integers(1, 16)
PENALTIES = st.floats(-10, 10)


def test_without_options_all_is_the_default() -> None:
    assert Decoding.of() == DEFAULT_DECODING == Decoding()


@given(penalty=PENALTIES, alternatives=st.integers(0, 1), asks=st.booleans())
def test_a_beam_of_one_is_greedy_whatever_its_penalty(penalty: float, alternatives: int, asks: bool) -> None:
    decoding = Decoding.of(length_penalty=penalty, alternatives=alternatives, log_probability=asks)
    assert decoding == Decoding(wants_log_probability=asks or alternatives == 1)


@given(size=SIZES, penalty=PENALTIES, asks=st.booleans())
def test_what_a_beam_finds_anyway_makes_no_other_decode(size: int, penalty: float, asks: bool) -> None:
    size += 1
    plain = Decoding.of(beam_size=size, length_penalty=penalty)
    assert plain == Decoding.of(beam_size=size, length_penalty=penalty, alternatives=1, log_probability=asks)
    assert (plain.beam_size, plain.length_penalty, plain.wants_log_probability) == (size, penalty, True)
    assert Decoding.of(beam_size=size, length_penalty=penalty, alternatives=2).alternatives == 2


@pytest.mark.parametrize(("penalty", "score"), [(1.0, -2.0), (0.0, -8.0), (2.0, -0.5), (-1.0, -32.0)])
def test_a_score_is_a_log_probability_by_a_power_of_the_length(penalty: float, score: float) -> None:
    assert Decoding(beam_size=2, length_penalty=penalty).score(-8.0, 4) == score


@pytest.mark.parametrize(("size", "slots", "expected"), [(1, 32, 4), (1, 3, 3), (8, 32, 8)])
def test_a_search_for_terms_has_the_penalty_of_the_request(size: int, slots: int, expected: int) -> None:
    decoding = Decoding.of(beam_size=size, length_penalty=-5.0).with_terms(slots, -5.0)
    assert decoding == Decoding.of(beam_size=expected, length_penalty=-5.0)


def test_a_greedy_decode_may_be_drawn() -> None:
    assert Decoding.of(sampling=Sampling(3)) == Decoding(sampling=Sampling(3))
