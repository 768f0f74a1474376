"""The route of a request: the models that translate its texts, and the options."""

from dataclasses import dataclass
from functools import cached_property

from service.options import Decoding, RequestOptions
from service.registry.catalog import Choice, ServedModel


@dataclass(frozen=True)
class Route:
    """One model, or two, and the options of all segments on the route.

    Attributes:
        chosen: the models, with the languages of the request.
        options: valid for these models, but without the data of a call.
    """

    chosen: Choice
    options: RequestOptions

    @cached_property
    def models(self) -> tuple[ServedModel, ...]:
        """All models, in the order in which they translate."""
        return self.chosen.models

    @cached_property
    def model_name(self) -> str:
        """The name of the model that writes the translation."""
        return self.chosen.model.manifest.name

    @cached_property
    def pivot_name(self) -> str:
        """The name of the model before that one; "" where there is none."""
        return "" if self.chosen.pivot is None else self.chosen.pivot.model.manifest.name

    @cached_property
    def path(self) -> str:
        """The names of all models, for people."""
        return f"{self.pivot_name}+{self.model_name}" if self.pivot_name else self.model_name


def into_pivot(options: RequestOptions, pivot: Choice) -> RequestOptions:
    """Give the options of the translation into the pivot language, which no caller sees.

    It has the same beam as the final translation, for the same quality, but no sampling.
    """
    decoding = options.decoding
    return options._replace(
        decoding=Decoding.of(beam_size=decoding.beam_size, length_penalty=decoding.length_penalty),
        max_target_tokens=None,
        wants_deltas=False,
        source_language=pivot.source,
        target_language=pivot.target,
        alternatives=0,
        mean_log_probability=False,
        alignments=False,
        prefix_ids=(),
    )
