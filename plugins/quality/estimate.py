"""The quality estimate: the probability that a reader accepts a translation."""

from math import exp, log
from typing import Final

from dragoman.quality import QualityWeights
from plugins.quality.counts import Counted, count
from service.text.text_quality import rounded

# Weights of a model that is not calibrated: a rule of thumb for the counts. Without any fault, the result is 0.82.
COUNTED_ALONE: Final = QualityWeights(
    bias=1.5,
    mean_log_probability=0.0,
    numbers_lost=-2.0,
    numbers_added=-1.0,
    codes_lost=-2.0,
    names_lost=-1.0,
    placeholders_lost=-2.5,
    repeats=-1.0,
    too_short=-2.0,
    too_long=-1.5,
    unfinished=-3.0,
    unknown_pieces=-1.0,
)
_LEAST_DOUBT: Final = 0.02  # keeps the logarithm finite where the model is certain
_MOST_LOG_ODDS: Final = 30.0  # larger values change no digit; `exp` does not overflow


def features(counted: Counted, mean_log_probability: float) -> list[float]:
    """Give the features of a translation, in the order of `QualityWeights` without the bias."""
    return [mean_log_probability, log(_LEAST_DOUBT + max(0.0, -mean_log_probability)), *counted]


class QualityEstimator:
    """Estimates the quality of the translations of one model.

    Attributes:
        needs_log_probability: whether it needs the log-probabilities of translations.
    """

    def __init__(self, weights: QualityWeights | None) -> None:
        """Make the estimator of a model.

        Args:
            weights: the weights of its bundle; None: the model is not calibrated, and only the counts are used.
        """
        weights = weights or COUNTED_ALONE
        self.needs_log_probability = weights.mean_log_probability != 0 or weights.log_doubt != 0
        self._bias, *self._weights = weights.model_dump().values()

    def judge(
        self,
        source: str,
        translation: str,
        languages: tuple[str, str],
        *,
        unfinished: bool,
        unknown_pieces: int,
        mean_log_probability: float,
    ) -> float:
        """Estimate the quality, as in `service.text.text_quality.Estimator`."""
        counted = count(source, translation, *languages, unfinished=unfinished, unknown_pieces=unknown_pieces)
        return self.estimate(counted, mean_log_probability)

    def estimate(self, counted: Counted, mean_log_probability: float) -> float:
        """Estimate the probability that a reader accepts a translation, 0 to 1.

        Args:
            counted: the counts of the translation.
            mean_log_probability: the mean over its tokens, in natural logarithms; ignored if it is not needed.
        """
        values = features(counted, mean_log_probability)
        log_odds = self._bias + sum(weight * value for weight, value in zip(self._weights, values, strict=True))
        return rounded(1 / (1 + exp(-max(-_MOST_LOG_ODDS, min(_MOST_LOG_ODDS, log_odds)))))
