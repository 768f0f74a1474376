"""What a request asks of the translation of its texts, worked out once for all requests that ask for the same."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from dragoman.v1 import translation_pb2 as pb
from service.calls.leg import Leg
from service.handlers.context import CallContext
from service.options import Decoding, RequestOptions
from service.registry.catalog import Catalog, Choice, ServedModel

_MOST: Final = 1_024  # kinds of requests; there are a few
_MOST_BYTES: Final = 1_024  # of the options of one

_Kind: TypeAlias = tuple[str, str, str, str, int, bytes]


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
    def first(self) -> ServedModel:
        """What reads the texts."""
        return self.chosen.first

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


def leg_over(route: Route, context: CallContext, *, wants_deltas: bool = False, all_or_nothing: bool = False) -> Leg:
    """Make the first leg of texts that go by a route, whose models their call holds.

    Args:
        wants_deltas: whether its answer is a stream.
        all_or_nothing: whether a text that cannot be translated ends it.
    """
    options = route.options._replace(
        deadline_s=context.deadline_s,
        client=context.caller.name,
        wants_deltas=wants_deltas,
        all_or_nothing=all_or_nothing,
    )
    last, pivot = Leg(route.model.in_memory(), route.model_name, options), route.chosen.pivot
    if pivot is None:
        return last
    return Leg(pivot.model.in_memory(), route.pivot_name, into_pivot(options, pivot), last)


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


class Routes:
    """The routes of one catalog at a time; lives on the event loop."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._routes: dict[_Kind, Route] = {}

    def find(self, request: pb.TranslateTextRequest, catalog: Catalog) -> Route | None:
        """Find the route of a request, if one like it was valid for the same models."""
        return self._routes.get(_kind(request)) if catalog is self._catalog else None

    def keep(self, request: pb.TranslateTextRequest, catalog: Catalog, route: Route) -> None:
        """Keep a route, where the next request like it has the same: nothing is drawn, and no glossary is read."""
        options = request.options
        if options.HasField("sampling") or options.HasField("glossary") or options.ByteSize() > _MOST_BYTES:
            return
        if catalog is not self._catalog or len(self._routes) >= _MOST:
            self._catalog, self._routes = catalog, {}
        self._routes[_kind(request)] = route


def _kind(request: pb.TranslateTextRequest) -> _Kind:
    """Give all that the route of a request depends on."""
    return (
        request.model,
        request.source_language_code,
        request.target_language_code,
        request.mime_type,
        request.priority,
        request.options.SerializeToString(),
    )
