"""Which texts of a call go by which route: all by one where the request says their language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Part
from service.calls.text_worker import Result
from service.handlers.answer import translated
from service.handlers.route import Route
from service.text.detection import Guess


@dataclass(frozen=True)
class Plan:
    """The ways of all texts of a call.

    Attributes:
        parts: of texts; empty where no text can be translated.
        routes: of these parts.
        refused: the texts of none of them, and why.
        languages: that were detected, of all texts, None for one that says nothing; empty where none were to be.
    """

    parts: Sequence[Part]
    routes: Sequence[Route]
    refused: Mapping[int, DragomanError] = field(default_factory=dict)
    languages: Sequence[Guess | None] = ()

    @cached_property
    def path(self) -> str:
        """The names of the models, for people."""
        return ",".join([route.path for route in self.routes])

    def answers(self, results: Mapping[int, Result]) -> list[pb.TranslatedText]:
        """Write the answer for each text of some, in their order."""
        if not self.languages:
            [route] = self.routes
            return [translated(result, route) for result in results.values()]
        return [
            translated(result, self._route_of.get(number), self.languages[number]) for number, result in results.items()
        ]

    @cached_property
    def _route_of(self) -> Mapping[int, Route]:
        parts = zip(self.parts, self.routes, strict=True)
        return {number: route for part, route in parts for number in part.numbers or ()}
