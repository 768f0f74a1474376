import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.workload import repeated

seeds = st.integers(0, 2**32 - 1)
counts = st.integers(0, 300)


@given(st.integers(1, 3000), counts, st.floats(0, 1), seeds)
def test_repeated_texts_exist_and_are_the_same_for_a_seed(texts: int, count: int, share: float, seed: int) -> None:
    drawn = repeated(texts, count, share, seed)
    assert len(drawn) == count
    assert ((drawn >= 0) & (drawn < texts)).all()
    assert (drawn == repeated(texts, count, share, seed)).all()


def test_the_share_is_asked_for_again_and_the_others_come_in_turn() -> None:
    drawn = repeated(50_000, 20_000, 0.5, 1)
    popular, rare = drawn[drawn < 1000], drawn[drawn >= 1000]
    assert len(popular) == pytest.approx(10_000, rel=0.05)
    assert rare.tolist() == list(range(1000, 1000 + len(rare)))
    often = np.bincount(popular)[:2] / len(popular)
    first = 1 / (np.arange(1, 1001) ** -1.1).sum()
    assert often.tolist() == pytest.approx([first, first * 2**-1.1], rel=0.1)
