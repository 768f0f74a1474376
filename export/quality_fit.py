"""The coefficients of the quality estimate, fitted by logistic regression, and the reliability of the estimates."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.quality import QualityWeights
from plugins.quality.estimate import COUNTED_ALONE

BINS: Final = 10
_TRUST: Final = 1.0  # weight of the rule of thumb for each coefficient, about that of one row
_STEPS: Final = 100
_HALVINGS: Final = 30
_SMALL: Final = 1e-8  # the smallest relevant step
_SEED: Final = 1

Features = NDArray[np.float64]
Accepted = NDArray[np.bool_]


class Bin(NamedTuple):
    """Sentences with similar estimates.

    Attributes:
        start: the lower end of the estimates [start, stop); the last bin contains 1 too.
        stop: the upper end.
        rows: the number of sentences.
        estimated: the mean of their estimates; NaN without sentences.
        accepted: the share of accepted sentences; NaN without sentences.
    """

    start: float
    stop: float
    rows: int
    estimated: float
    accepted: float


def fit(features: Features, accepted: Accepted) -> QualityWeights:
    """Find the most probable coefficients; with few data, they stay near the rule of thumb.

    Args:
        features: [sentences, coefficients without the bias], in the order of `QualityWeights`.
        accepted: [sentences], whether each is accepted.
    """
    names = list(QualityWeights.model_fields)
    rows = np.column_stack([np.ones(len(features)), features])
    middle = np.array([getattr(COUNTED_ALONE, name) for name in names])
    trust = np.array([0.0 if name == "bias" else _TRUST for name in names])

    def loss(weights: Features) -> float:
        log_odds = rows @ weights
        likelihood = np.logaddexp(0, np.where(accepted, -log_odds, log_odds)).sum()
        return float(likelihood + (trust * (weights - middle) ** 2).sum() / 2)

    weights = middle.copy()
    for _ in range(_STEPS):
        odds = _sigmoid(rows @ weights)
        slope = rows.T @ (odds - accepted) + trust * (weights - middle)
        curve = (rows * (odds * (1 - odds))[:, None]).T @ rows + np.diag(trust + _SMALL)
        step = np.linalg.solve(curve, slope)
        sizes = (2.0**-halving for halving in range(_HALVINGS))
        size = next((size for size in sizes if loss(weights - size * step) <= loss(weights)), 0.0)
        weights = weights - size * step
        if size * float(np.abs(step).max()) < _SMALL:
            break
    return QualityWeights(**{name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)})


def held_out_estimates(features: Features, accepted: Accepted) -> Features:
    """Estimate each half of the sentences with the coefficients of the other half; the random halves never change.

    Args:
        features: as for :func:`fit`.
        accepted: as for :func:`fit`.

    Returns:
        The estimate of each sentence, [sentences].
    """
    drawn = np.random.default_rng(_SEED).permutation(len(features))
    halves = (drawn[::2], drawn[1::2])
    estimates = np.zeros(len(features))
    for own, other in (halves, halves[::-1]):
        weights = np.array(list(fit(features[other], accepted[other]).model_dump().values()))
        estimates[own] = _sigmoid(weights[0] + features[own] @ weights[1:])
    return estimates


def reliability(estimates: Features, accepted: Accepted) -> list[Bin]:
    """Compare estimates with the accepted shares, in ten ranges of the estimates.

    Args:
        estimates: [sentences], each 0 to 1.
        accepted: [sentences], whether each is accepted.
    """
    places = np.minimum((estimates * BINS).astype(int), BINS - 1)
    return [_bin(number, estimates[places == number], accepted[places == number]) for number in range(BINS)]


def expected_error(bins: Sequence[Bin]) -> float:
    """Average the distance between estimates and accepted shares over all sentences of the bins."""
    filled = [each for each in bins if each.rows]
    return sum(each.rows * abs(each.estimated - each.accepted) for each in filled) / sum(each.rows for each in filled)


def _bin(number: int, estimates: Features, accepted: Accepted) -> Bin:
    means = (float(estimates.mean()), float(accepted.mean())) if len(estimates) else (np.nan, np.nan)
    return Bin(number / BINS, (number + 1) / BINS, len(estimates), *means)


def _sigmoid(log_odds: Features) -> Features:
    return np.exp(-np.logaddexp(0, -log_odds))
