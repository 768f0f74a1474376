"""Coefficients that are found again, and estimates that keep what they promise."""

import numpy as np
import pytest

from dragoman.quality import QualityWeights
from export.quality_fit import Bin, expected_error, fit, held_out_estimates, reliability
from export.quality_plot import diagram
from plugins.quality.estimate import COUNTED_ALONE

COEFFICIENTS = len(QualityWeights.model_fields) - 1


def drawn(rows: int, weights: QualityWeights) -> tuple[np.ndarray, np.ndarray]:
    """Draw features, and by coefficients what is accepted."""
    random = np.random.default_rng(3)
    mean = -random.exponential(0.5, rows)
    features = np.column_stack([mean, np.log(0.02 - mean), random.poisson(0.5, (rows, COEFFICIENTS - 2))])
    values = list(weights.model_dump().values())
    log_odds = values[0] + features @ np.array(values[1:])
    return features.astype(float), random.random(rows) < 1 / (1 + np.exp(-log_odds))


TRUE = COUNTED_ALONE.model_copy(
    update={
        "bias": 3.0,
        "mean_log_probability": 2.0,
        "log_doubt": -1.0,
        "names_lost": -0.25,
        "too_long": 0.5,
        "unfinished": -1.0,
    }
)


def test_coefficients_are_found_again() -> None:
    found = fit(*drawn(20_000, TRUE)).model_dump()
    assert found == {name: pytest.approx(value, abs=0.3) for name, value in TRUE.model_dump().items()}


def test_what_never_occurs_stays_at_the_rule_of_thumb() -> None:
    features, accepted = drawn(500, TRUE)
    features[:, 6] = 0
    assert fit(features, accepted).placeholders_lost == COUNTED_ALONE.placeholders_lost


def test_sentences_that_one_number_tells_apart_have_finite_coefficients() -> None:
    features, _ = drawn(500, TRUE)
    weights = fit(features, features[:, 0] > -0.3)
    assert weights.log_doubt < -5
    assert all(abs(value) < 100 for value in weights.model_dump().values())


def test_estimates_keep_their_promise_on_the_other_half() -> None:
    features, accepted = drawn(20_000, TRUE)
    estimates = held_out_estimates(features, accepted)
    bins = reliability(estimates, accepted)
    assert sum(each.rows for each in bins) == 20_000
    assert expected_error(bins) < 0.02
    assert np.array_equal(estimates, held_out_estimates(features, accepted))


def test_bins_hold_their_borders_and_may_be_empty() -> None:
    bins = reliability(np.array([0.0, 0.05, 0.1, 1.0]), np.array([False, True, True, True]))
    assert bins[0] == Bin(0.0, 0.1, 2, 0.025, 0.5)
    assert (bins[1].rows, bins[5].rows, bins[9].rows) == (1, 0, 1)
    assert expected_error(bins) == pytest.approx((2 * 0.475 + 0.9 + 0) / 4)


def test_the_diagram_shows_the_bins_that_have_sentences() -> None:
    bins = reliability(np.array([0.05, 0.15, 0.95]), np.array([False, True, True]))
    shares, rows = diagram(bins).axes
    assert list(shares.lines[1].get_xdata()) == [0.05, 0.15, 0.95]
    assert [bar.get_height() for bar in rows.patches] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
