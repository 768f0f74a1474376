"""A leg is one model in the translation of a text. A translation through a pivot language has two legs."""

from typing import NamedTuple

from service.decode import worst
from service.options import RequestOptions
from service.registry.catalog import Pipeline
from service.text.result import TextResult
from service.text.text_quality import rounded


class Leg(NamedTuple):
    """A model, and the options of the texts for it.

    Attributes:
        pipeline: pipeline of the model, which the call holds.
        then: the next leg, which reads the translations of this one; None: this leg is the last.
    """

    pipeline: Pipeline
    model_name: str
    options: RequestOptions
    then: "Leg | None" = None


def both(pivot: TextResult, result: TextResult) -> TextResult:
    """Put the results of two legs of a text together."""
    return TextResult(
        text=result.text,
        source_tokens=pivot.source_tokens,
        target_tokens=result.target_tokens,
        finish_reason=worst({pivot.finish_reason, result.finish_reason}),
        segments=pivot.segments,
        mean_log_probability=result.mean_log_probability,
        unknown_pieces=pivot.unknown_pieces,
        split=pivot.split or result.split,
        alternatives=[
            alternative._replace(finish_reason=worst({pivot.finish_reason, alternative.finish_reason}))
            for alternative in result.alternatives
        ],
        term_segments=pivot.term_segments,
        glossary_misses=tuple(dict.fromkeys((*pivot.glossary_misses, *result.glossary_misses))),
        quality_estimate=(
            None if result.quality_estimate is None else _product(pivot.quality_estimate, result.quality_estimate)
        ),
        segment_qualities=[
            quality._replace(estimate=_product(pivot.quality_estimate, quality.estimate))
            for quality in result.segment_qualities
        ],
    )


def _product(pivot: float | None, estimate: float) -> float:
    """Multiply the estimates of both legs; where the first leg had no segment, give the second estimate."""
    return estimate if pivot is None else rounded(pivot * estimate)
