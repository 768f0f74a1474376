"""Checks requests, and whether they can succeed, before any work for them: a refusal has to be cheap."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from google.protobuf.message import Message

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Call, Part
from service.calls.large_call import LargeCall
from service.calls.leg import Leg
from service.calls.text_worker import SMALL, Result, TextWorker
from service.calls.texts_by_language import TextsByLanguage
from service.handlers import validation
from service.handlers.answer import translated
from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.handlers.glossaries import Glossaries
from service.handlers.languages import Detection
from service.handlers.options import priority_of
from service.handlers.route import Route, into_pivot
from service.handlers.source_language import source_language_of
from service.options import RequestOptions
from service.registry.catalog import Catalog, ServedModel
from service.registry.residency import Residency
from service.settings import Settings
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics
from service.text.detection import Guess

_TAKES_CALLS: Final = attrgetter("takes_calls")
_MOST_ROUTES: Final = 1_024  # that are kept; there are a few kinds of requests
_MOST_BYTES: Final = 1_024  # of the options of a request whose route is kept
# The fields that a route depends on, in addition to the options.
_ASKED: Final = attrgetter("model", "source_language_code", "target_language_code", "mime_type", "priority")


@dataclass(frozen=True)
class Plan:
    """The routes of all texts of a call.

    Attributes:
        parts: parts of the texts; empty where no text can be translated.
        routes: routes of these parts.
        refused: errors of the texts that are in no part.
        languages: detected languages of all texts, None where a text does not tell; empty where none were detected.
    """

    parts: Sequence[Part]
    routes: Sequence[Route]
    refused: Mapping[int, DragomanError] = field(default_factory=dict)
    languages: Sequence[Guess | None] = ()

    def answers(self, results: Mapping[int, Result]) -> list[pb.TranslatedText]:
        """Write the answer for each of some texts, in their order."""
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


class Planner:
    """Checks requests, holds the models of a call in memory, and makes the call, without texts yet.

    Args:
        memory: brings models into memory; None: all models are in memory.

    Attributes:
        worker, metrics: shared by all calls.
    """

    def __init__(
        self,
        gate: Gate,
        settings: Settings,
        metrics: Metrics,
        worker: TextWorker,
        glossaries: Glossaries,
        languages: Detection,
        memory: Residency | None,
    ) -> None:
        self._gate = gate
        self._settings = settings
        self.metrics = metrics
        self.worker = worker
        self._glossaries = glossaries
        self._languages = languages
        self._memory = memory
        self._routes = Routes()
        # Texts of no more characters are within every limit of size, for any options: a character has at most 4 bytes.
        limit_bytes = min(settings.max_text_bytes, validation.answerable_bytes(settings))
        self._small = SMALL if limit_bytes >= 4 * SMALL else 0

    async def translation(
        self,
        request: pb.TranslateTextRequest,
        context: CallContext,
        record: CallStats,
        held: ExitStack,
        *,
        wants_deltas: bool = False,
    ) -> tuple[Plan, Call]:
        """Make the plan and the call of a request that has all texts.

        Args:
            held: keeps the models until it is closed.
            wants_deltas: whether the answer is a stream.

        Raises:
            DragomanError: the request is refused.
        """
        contents = request.contents
        record.texts = len(contents)
        is_small = len(contents) <= self._settings.max_contents and sum(map(len, contents)) <= self._small
        route = self._routes.find(request, self._gate.catalog())
        if route is not None and all(map(_TAKES_CALLS, route.models)):
            is_named = request.request_id in ("", record.request_id)  # the record has a valid id
            if not (is_small and is_named and contents):
                validation.check_texts(request, self._settings, one_answer=not wants_deltas)
            for model in route.models:
                held.enter_context(model.held())
            leg = leg_over(route, context, wants_deltas=wants_deltas, all_or_nothing=request.all_or_nothing)
            plan = Plan([Part(leg)], [route])
        else:
            plan = await self._new_plan(request, context, held, wants_deltas=wants_deltas)
        record.model = ",".join([route.path for route in plan.routes])
        for leg, numbers in plan.parts:
            texts = contents if numbers is None else [contents[number] for number in numbers]
            # In HTML and XML, the size of the texts is known later.
            text_bytes = 0 if leg.options.has_tags else sum([len(text.encode()) for text in texts])
            leg.pipeline.intake.admission.precheck(leg.options, text_bytes)
        is_simple = not plan.languages and plan.parts[0].leg.then is None
        if is_simple and is_small:
            return plan, Call(plan.parts, self.worker, self.metrics, record)
        return plan, LargeCall(plan.parts, self.worker, self.metrics, record, refused=plan.refused)

    async def one_route(
        self,
        choose: Callable[[Catalog], Route],
        request: Message,
        context: CallContext,
        record: CallStats,
        held: ExitStack,
        *,
        all_or_nothing: bool = False,
    ) -> tuple[Route, list[Part]]:
        """Choose one route for all texts of a call, and hold its models in memory; gives the part of all texts, too.

        Args:
            choose: chooses the route among the models, and raises where the request is wrong.
            held: keeps the models until it is closed.
            all_or_nothing: whether a text that cannot be translated ends the call.

        Raises:
            DragomanError: the request is refused.
        """
        _, [route] = await self._in_memory(lambda catalog: [choose(catalog)], request.ByteSize(), context, held)
        record.model = route.path
        return route, [Part(leg_over(route, context, all_or_nothing=all_or_nothing))]

    async def _new_plan(
        self, request: pb.TranslateTextRequest, context: CallContext, held: ExitStack, *, wants_deltas: bool
    ) -> Plan:
        """Make the plan of a call with languages to detect, with a new route, or with models that are not in memory."""
        source_language = source_language_of(request, self._gate.catalog())
        by_language = TextsByLanguage((), {source_language.code: range(len(request.contents))}, {})
        if source_language.among:
            self._precheck(request, context, source_language.among, wants_deltas=wants_deltas)
            async with self._gate.limited(context):
                catalog, client = self._gate.catalog(), context.caller.name
                by_language = await self._languages.group(request, client, catalog, source_language.among)

        def choose(catalog: Catalog) -> list[Route]:
            model, target, names = request.model, request.target_language_code, request.options.glossary.names
            sources = catalog.sources(model, target) if names and source_language.among else ()
            fixed = catalog, self._settings, self._glossaries, [catalog.choose(model, each, target) for each in sources]
            return [
                validation.translation_route(request, source, *fixed, one_answer=not wants_deltas)
                for source in by_language.texts
            ]

        catalog, routes = await self._in_memory(choose, request.ByteSize(), context, held)
        if not source_language.among:
            self._routes.keep(request, catalog, routes[0])
        legs = [
            leg_over(route, context, wants_deltas=wants_deltas, all_or_nothing=request.all_or_nothing)
            for route in routes
        ]
        numbers = by_language.texts.values() if source_language.among else [None]
        return Plan(list(map(Part, legs, numbers)), routes, by_language.refused, by_language.detected)

    async def _in_memory(
        self, choose: Callable[[Catalog], list[Route]], size_bytes: int, context: CallContext, held: ExitStack
    ) -> tuple[Catalog, list[Route]]:
        """Choose routes, and hold their models in memory.

        Args:
            choose: chooses among the models; called again once these are in memory, and where a model was replaced
                while the call waited for it.
            size_bytes: size of the message, which is kept while the call waits.
            held: releases the models when the call ends.

        Returns:
            The catalog that was used, and the chosen routes.

        Raises:
            DragomanError: an error of `choose`; or the models cannot be brought into memory in time.
        """
        while True:
            catalog = self._gate.catalog()
            routes = choose(catalog)
            models = list(dict.fromkeys(model for route in routes for model in route.models))
            if self._memory is None or all(model.takes_calls for model in models):
                for model in models:
                    held.enter_context(model.held())
                return catalog, routes
            async with self._gate.limited(context):
                if await self._memory.bring(models, held, size_bytes, context.caller.name):
                    return catalog, choose(catalog)

    def _precheck(
        self, request: pb.TranslateTextRequest, context: CallContext, sources: Sequence[str], *, wants_deltas: bool
    ) -> None:
        """Refuse a request that is wrong, or has no room in any model, for every possible language of its texts."""
        catalog = self._gate.catalog()
        validation.check_undetected(request, sources[0], catalog, self._settings, one_answer=not wants_deltas)
        options = RequestOptions(
            deadline_s=context.deadline_s, client=context.caller.name, priority=priority_of(request)
        )
        refusals: dict[ServedModel, DragomanError] = {}
        for source in sources:
            first = catalog.choose(request.model, source, request.target_language_code).models[0]
            if first.pipeline is None:
                return
            if first not in refusals:
                try:
                    first.pipeline.intake.admission.precheck(options, 0)
                except DragomanError as refusal:
                    refusals[first] = refusal
                else:
                    return
        raise next(iter(refusals.values()))


def leg_over(route: Route, context: CallContext, *, wants_deltas: bool = False, all_or_nothing: bool = False) -> Leg:
    """Make the first leg of a route, whose models the call holds."""
    options = route.options._replace(
        deadline_s=context.deadline_s,
        client=context.caller.name,
        wants_deltas=wants_deltas,
        all_or_nothing=all_or_nothing,
    )
    last, pivot = Leg(route.chosen.model.in_memory(), route.model_name, options), route.chosen.pivot
    if pivot is None:
        return last
    return Leg(pivot.model.in_memory(), route.pivot_name, into_pivot(options, pivot), last)


class Routes:
    """A cache of routes, of one catalog at a time; lives on the event loop."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._routes: dict[tuple[Any, bytes], Route] = {}

    def find(self, request: pb.TranslateTextRequest, catalog: Catalog) -> Route | None:
        """Find the route of a request, if an equal request was valid for the same models."""
        kind = _ASKED(request), request.options.SerializeToString()
        return self._routes.get(kind) if catalog is self._catalog else None

    def keep(self, request: pb.TranslateTextRequest, catalog: Catalog, route: Route) -> None:
        """Keep a route, unless the next equal request may have another: with sampling, or with a glossary."""
        options = request.options
        if options.HasField("sampling") or options.HasField("glossary") or options.ByteSize() > _MOST_BYTES:
            return
        if catalog is not self._catalog or len(self._routes) >= _MOST_ROUTES:
            self._catalog, self._routes = catalog, {}
        self._routes[_ASKED(request), options.SerializeToString()] = route
