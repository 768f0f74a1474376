"""What a bundle says of the quality of its translations: the coefficients of a logistic regression."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Coefficient = Annotated[float, Field(allow_inf_nan=False)]


class QualityWeights(BaseModel):
    """By what the log-odds grow that a reader accepts a translation, for each unit of what is known of it.

    Attributes:
        bias: the log-odds where all else is 0.
        mean_log_probability: of its tokens, in natural logarithms; `plugins.quality.counts` says what the others
            are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bias: _Coefficient
    mean_log_probability: _Coefficient
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
