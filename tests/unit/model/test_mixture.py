import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from model.mixture import Mixture

TAGS = ["ui-a", "ui-b-mt", "doc"]


def mixture(weights: dict[str, float], rows: int = 300) -> Mixture:
    return Mixture(TAGS, np.arange(rows, dtype=np.uint32) % 3, weights)


def counts(mixed: Mixture, epoch: int = 0, seed: int = 1) -> list[int]:
    return np.bincount(mixed.draw(seed, epoch) % 3, minlength=3).tolist()


def test_every_pair_once_without_weights() -> None:
    drawn = mixture({}).draw(1, 0)
    assert sorted(drawn.tolist()) == list(range(300))
    assert drawn.tolist() != list(range(300))


def test_the_last_pattern_that_matches_counts() -> None:
    assert counts(mixture({"ui-*": 2, "*-mt": 0})) == [200, 0, 100]
    assert counts(mixture({"*-mt": 0, "ui-*": 2})) == [200, 200, 100]


@given(weight=st.floats(0, 5), seed=st.integers(0, 9))
def test_a_weight_is_copies_of_each_pair(weight: float, seed: int) -> None:
    drawn = mixture({"ui-a": weight}, rows=3000).draw(seed, 0)
    copies = np.bincount(drawn, minlength=3000)[::3]
    assert set(copies.tolist()) <= {int(weight), int(weight) + 1}
    assert abs(copies.mean() - weight) < 0.1
    assert mixture({"ui-a": weight}, rows=3000).expected == pytest.approx(2000 + 1000 * weight)


def test_another_part_each_epoch_and_the_same_for_the_same_seed() -> None:
    mixed = mixture({"*": 0.35})
    first, second = (set(mixed.draw(1, epoch).tolist()) for epoch in (0, 1))
    assert first != second
    assert mixture({"*": 0.35}).draw(1, 1).tolist() == mixed.draw(1, 1).tolist()
    assert set(mixed.draw(2, 0).tolist()) != first


def test_the_report_counts_what_each_pattern_weights() -> None:
    assert mixture({"*": 0.5, "*-mt": 0}).report() == [
        {"pattern": "*", "weight": 0.5, "tags": 2, "pairs": 200},
        {"pattern": "*-mt", "weight": 0, "tags": 1, "pairs": 100},
        {"pattern": "", "weight": 1.0, "tags": 0, "pairs": 0},
    ]


def test_a_pattern_that_matches_nothing_is_named() -> None:
    with pytest.raises(
        DataError, match=r"weight: 'iu-\*' matches no tag of the corpus; its tags are ui-a, ui-b-mt, doc$"
    ):
        mixture({"iu-*": 2})


def test_no_pair_left() -> None:
    with pytest.raises(DataError, match="no pair is left"):
        mixture({"*": 0})
