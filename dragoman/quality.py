"""The quality estimate of a bundle: the coefficients of a logistic regression."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Coefficient = Annotated[float, Field(allow_inf_nan=False)]


class QualityWeights(BaseModel):
    """Changes of the log-odds that a reader accepts a translation, per unit of each feature.

    Attributes:
        bias: the log-odds when all features are 0.
        mean_log_probability: the mean over its tokens, in natural logarithms.
        log_doubt: the natural logarithm of 0.02 minus this mean. `plugins.quality.counts` explains the other features.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bias: _Coefficient
    mean_log_probability: _Coefficient
    log_doubt: _Coefficient = 0.0
    numbers_lost: _Coefficient
    numbers_added: _Coefficient
    codes_lost: _Coefficient
    names_lost: _Coefficient
    placeholders_lost: _Coefficient
    repeats: _Coefficient
    too_short: _Coefficient
    too_long: _Coefficient
    unfinished: _Coefficient
    unknown_pieces: _Coefficient
