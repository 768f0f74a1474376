from argparse import ArgumentTypeError
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.workload import MAX_WORDS, WordCounts, bulk_requests, repeated, texts_of_lengths, zipf_weights

TEXTS = ["one two three", "four", "five six"]
seeds = st.integers(0, 2**32 - 1)
counts = st.integers(0, 300)


@given(
    st.one_of(
        st.integers(1, 50).map(lambda n: f"fixed:{n}"),
        st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda p: f"uniform:{p[0]}:{p[0] + p[1]}"),
        st.tuples(st.integers(1, 40), st.floats(0, 5)).map(lambda p: f"lognormal:{p[0]}:{p[1]}"),
    ),
    counts,
    seeds,
)
def test_lengths_are_of_their_kind_and_the_same_for_a_seed(written: str, count: int, seed: int) -> None:
    words = WordCounts.parse(written)
    drawn = words.draw(count, seed)
    assert len(drawn) == count
    assert ((drawn >= 1) & (drawn <= MAX_WORDS)).all()
    assert (drawn == words.draw(count, seed)).all()
    if words.kind == "fixed":
        assert (drawn == words.first).all()
    if words.kind == "uniform":
        assert ((drawn >= words.first) & (drawn <= words.second)).all()


def test_half_of_the_lognormal_lengths_are_below_the_median() -> None:
    drawn = WordCounts.parse("lognormal:12:0.6").draw(20_000, 1)
    assert np.median(drawn) == pytest.approx(12, abs=1)
    assert np.log(drawn).std() == pytest.approx(0.6, abs=0.05)


def test_uniform_lengths_are_all_there_and_alike() -> None:
    seen = Counter(WordCounts.parse("uniform:3:5").draw(30_000, 1).tolist())
    assert seen.keys() == {3, 4, 5}
    assert max(seen.values()) < 1.1 * min(seen.values())


@pytest.mark.parametrize(
    "text",
    ["", "fixed", "fixed:x", "fixed:0", "fixed:1:2", "normal:3:4", "uniform:5:4", "uniform:1:10001", "lognormal:12:9"],
)
def test_other_distributions_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"fixed:N|LOW <= HIGH|SIGMA from 0 to 5"):
        WordCounts.parse(text)


@given(st.lists(st.integers(1, 30), max_size=20), seeds)
def test_texts_have_their_lengths_and_are_of_the_file(lengths: list[int], seed: int) -> None:
    texts = texts_of_lengths(TEXTS, np.array(lengths, dtype=np.int64), seed)
    assert [len(text.split()) for text in texts] == lengths
    cycle = "one two three four five six " * 7
    assert all(text in cycle and text.split()[0] in ("one", "four", "five") for text in texts)
    assert texts == texts_of_lengths(TEXTS, np.array(lengths, dtype=np.int64), seed)


@given(st.integers(1, 500), st.floats(0, 3))
def test_zipf_weights_fall_by_the_law(count: int, exponent: float) -> None:
    weights = zipf_weights(count, exponent)
    assert weights.sum() == pytest.approx(1)
    assert weights / weights[0] == pytest.approx(np.arange(1, count + 1, dtype=float) ** -exponent)


@given(st.integers(1, 3000), counts, st.floats(0, 1), st.floats(0, 3), seeds)
def test_repeated_texts_exist_and_are_the_same_for_a_seed(
    texts: int, count: int, share: float, exponent: float, seed: int
) -> None:
    drawn = repeated(texts, count, share, exponent, seed)
    assert len(drawn) == count
    assert ((drawn >= 0) & (drawn < texts)).all()
    assert (drawn == repeated(texts, count, share, exponent, seed)).all()


def test_the_share_is_asked_for_again_and_the_others_come_in_turn() -> None:
    drawn = repeated(50_000, 20_000, 0.5, 1.1, 1)
    popular, rare = drawn[drawn < 1000], drawn[drawn >= 1000]
    assert len(popular) == pytest.approx(10_000, rel=0.05)
    assert rare.tolist() == list(range(1000, 1000 + len(rare)))
    assert np.bincount(popular)[0] / len(popular) == pytest.approx(zipf_weights(1000, 1.1)[0], rel=0.1)


@given(counts, seeds)
def test_bulk_requests_are_none_or_all_at_the_ends(requests: int, seed: int) -> None:
    assert bulk_requests(requests, 0.0, seed) == frozenset()
    assert bulk_requests(requests, 1.0, seed) == frozenset(range(requests))


def test_the_share_of_bulk_requests() -> None:
    assert len(bulk_requests(10_000, 0.3, 1)) == pytest.approx(3000, rel=0.05)
