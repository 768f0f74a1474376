"""What is planned for the texts of a call, and the call that is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Call, Part
from service.calls.large_call import LargeCall
from service.calls.leg import Leg
from service.calls.text_worker import SMALL, Result, TextWorker
from service.calls.window import Window
from service.handlers.answer import translated
from service.handlers.route import Route
from service.settings import Settings
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.detection import Guess
from service.text.pair import Pair


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


class Calls:
    """Makes calls without texts, whose models the caller holds.

    Args:
        settings: the limits.
    """

    def __init__(self, settings: Settings, metrics: Metrics, worker: TextWorker) -> None:
        self._metrics = metrics
        self._worker = worker
        # No token is shorter than a byte: one stream without a beam does not fill the queue of an idle engine.
        self._window = Window(settings.max_contents, settings.queue_source_tokens)

    def planned(self, plan: Plan, record: CallStats, contents: Sequence[str]) -> Call:
        """Make a call that translates, all of whose texts are known."""
        is_simple = not plan.languages and plan.parts[0].leg.then is None
        if is_simple and sum(map(len, contents)) <= SMALL:
            return Call(plan.parts, self._worker, self._metrics, record)
        return LargeCall(plan.parts, self._worker, self._metrics, record, refused=plan.refused)

    def fed(self, leg: Leg, record: CallStats) -> LargeCall:
        """Make a call that translates, whose texts come one after the other, and are answered so."""
        return LargeCall([Part(leg)], self._worker, self._metrics, record, window=self._window)

    def scoring(self, leg: Leg, record: CallStats, pairs: Sequence[Pair]) -> Call:
        """Make a call that scores."""
        kind = Call if sum([pair.characters for pair in pairs]) <= SMALL else LargeCall
        return kind([Part(leg)], self._worker, self._metrics, record)
