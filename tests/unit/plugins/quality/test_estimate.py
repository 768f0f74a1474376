"""The estimate, of a calibrated model and of others."""

import pytest

from dragoman.quality import QualityWeights
from plugins.quality.counts import Counted, count
from plugins.quality.estimate import COUNTED_ALONE, QualityEstimator

NOTHING = Counted(*[0] * len(Counted._fields))


def test_every_count_has_a_coefficient() -> None:
    assert list(QualityWeights.model_fields) == ["bias", "mean_log_probability", "log_doubt", *Counted._fields]


def test_without_a_calibration_counts_decide_alone() -> None:
    estimator = QualityEstimator(None)
    assert not estimator.needs_log_probability
    assert estimator.estimate(NOTHING, -9.0) == 0.8176
    bad = count("Your order #48213 has been shipped.", "Dein Befehl wurde 1483-Aufts Schiff errichtet.", "en", "de")
    assert estimator.estimate(bad, 0.0) < 0.25


def test_a_calibrated_model_is_asked_how_sure_it_was() -> None:
    estimator = QualityEstimator(COUNTED_ALONE.model_copy(update={"bias": 2.0, "mean_log_probability": 4.0}))
    assert estimator.needs_log_probability
    assert estimator.estimate(NOTHING, -0.5) == 0.5
    assert estimator.estimate(NOTHING._replace(numbers_lost=1), -0.5) == pytest.approx(0.1192)


def test_doubt_counts_by_its_logarithm() -> None:
    estimator = QualityEstimator(COUNTED_ALONE.model_copy(update={"bias": 0.0, "log_doubt": -1.0}))
    assert estimator.needs_log_probability
    assert estimator.estimate(NOTHING, -0.98) == 0.5
    assert estimator.estimate(NOTHING, -0.23) == 0.8  # a quarter of the doubt: four times the odds


@pytest.mark.parametrize(("log_probability", "expected"), [(-1e9, 0.0), (1e9, 1.0)])
def test_no_estimate_leaves_its_range(log_probability: float, expected: float) -> None:
    estimator = QualityEstimator(COUNTED_ALONE.model_copy(update={"mean_log_probability": 4.0}))
    assert estimator.estimate(NOTHING, log_probability) == expected
