"""What a request asks of the translation of its texts: the models, and the options."""

from dataclasses import dataclass
from functools import cached_property

from service.options import Decoding, RequestOptions
from service.registry.catalog import Choice, ServedModel


@dataclass(frozen=True)
class Route:
    """One model, or two, and the options of all segments on it.

    Attributes:
        chosen: the models, with the languages of the request.
        options: valid for them, but of no call yet.
    """

    chosen: Choice
    options: RequestOptions

    @cached_property
    def model(self) -> ServedModel:
        """What writes the translation."""
        return self.chosen.model

    @cached_property
    def models(self) -> tuple[ServedModel, ...]:
        """All models, in the order of the texts' way."""
        return self.chosen.models

    @cached_property
    def model_name(self) -> str:
        """The name of the model that writes."""
        return self.model.manifest.name

    @cached_property
    def pivot_name(self) -> str:
        """The name of the model before it; "" where there is none."""
        return "" if self.chosen.pivot is None else self.chosen.pivot.model.manifest.name

    @cached_property
    def path(self) -> str:
        """The names of all models, for people."""
        return f"{self.pivot_name}+{self.model_name}" if self.pivot_name else self.model_name

    @cached_property
    def beam_size(self) -> int:
        """Hypotheses that are kept at each step of a segment without terms."""
        return self.options.decoding.beam_size

    @cached_property
    def seed(self) -> int | None:
        """The seed of what is drawn; None where nothing is."""
        sampling = self.options.decoding.sampling
        return None if sampling is None else sampling.seed


def into_pivot(options: RequestOptions, pivot: Choice) -> RequestOptions:
    """Give the options of texts on their way into the pivot language, where nobody sees them.

    They are translated as well as what comes of them, with the same beam; nothing is drawn.
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
