"""Which texts of a call go by which route: all by one where the request says their language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.text_worker import Result
from service.handlers.answer import translated
from service.handlers.route import Route
from service.options import RequestOptions
from service.text.detection import Guess


class Part(NamedTuple):
    """Texts that go the same way.

    Attributes:
        route: of them.
        options: of the route, for this call.
        numbers: of the texts.
    """

    route: Route
    options: RequestOptions
    numbers: Sequence[int]


@dataclass(frozen=True)
class Plan:
    """The ways of all texts of a call.

    Attributes:
        parts: of texts; empty where no text can be translated.
        refused: the texts of none of them, and why.
        languages: that were detected, of all texts, None for one that says nothing; empty where none were to be.
    """

    parts: Sequence[Part]
    refused: Mapping[int, DragomanError] = field(default_factory=dict)
    languages: Sequence[Guess | None] = ()

    @cached_property
    def path(self) -> str:
        """The names of the models, for people."""
        return ",".join([part.route.path for part in self.parts])

    def answers(self, results: Mapping[int, Result]) -> list[pb.TranslatedText]:
        """Write the answer for each text of some, in their order."""
        if not self.languages:
            [part] = self.parts
            return [translated(result, part.route) for result in results.values()]
        return [
            translated(result, self._routes.get(number), self.languages[number]) for number, result in results.items()
        ]

    @cached_property
    def _routes(self) -> Mapping[int, Route]:
        return {number: part.route for part in self.parts for number in part.numbers}
