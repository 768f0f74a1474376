"""Checks requests, and whether they have prospects: before anything is set up for one, refusals are to be cheap."""

from collections.abc import Sequence
from contextlib import ExitStack
from operator import attrgetter
from typing import Final

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Part
from service.calls.leg import Leg
from service.calls.spread import Spread
from service.handlers import validation
from service.handlers.calls import Plan
from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.handlers.languages import Detection
from service.handlers.leases import Leases
from service.handlers.options import priority_of
from service.handlers.route import Route, Routes, leg_over
from service.handlers.spoken import spoken_of
from service.handlers.validation import Checked
from service.options import RequestOptions
from service.registry.catalog import Catalog, ServedModel
from service.registry.glossaries import Glossaries
from service.settings import Settings
from service.telemetry.call_stats import CallStats

_TAKES_CALLS: Final = attrgetter("takes_calls")


class Planner:
    """Says by which route each text of a request goes: all by one where it says their language.

    Args:
        settings: the limits.
        glossaries: that are stored.
        languages: detects them.
    """

    def __init__(
        self, gate: Gate, leases: Leases, settings: Settings, glossaries: Glossaries, languages: Detection
    ) -> None:
        self._gate = gate
        self._leases = leases
        self._settings = settings
        self._glossaries = glossaries
        self._languages = languages
        self._routes = Routes()

    async def plan(
        self,
        request: pb.TranslateTextRequest,
        context: CallContext,
        record: CallStats,
        held: ExitStack,
        *,
        wants_deltas: bool = False,
    ) -> Plan:
        """Make the plan of a call whose texts are all known.

        Args:
            held: keeps its models until it is closed.
            wants_deltas: whether its answer is a stream.

        Raises:
            DragomanError: the request is refused.
        """
        record.texts = len(request.contents)
        route = self._routes.find(request, self._gate.catalog())
        if route is not None and all(map(_TAKES_CALLS, route.models)):
            validation.check_known(request, self._settings, one_answer=not wants_deltas)
            for model in route.models:
                held.enter_context(model.held())
            leg = leg_over(route, context, wants_deltas=wants_deltas, all_or_nothing=request.all_or_nothing)
            plan = Plan([Part(leg)], [route])
        else:
            plan = await self._new_plan(request, context, held, wants_deltas=wants_deltas)
        record.model = plan.path
        for leg, numbers in plan.parts:
            contents = request.contents if numbers is None else [request.contents[number] for number in numbers]
            # Of HTML and XML, how much is text shows later.
            text_bytes = 0 if leg.options.has_tags else sum([len(text.encode()) for text in contents])
            leg.pipeline.intake.admission.precheck(leg.options, text_bytes)
        return plan

    async def feed_route(
        self, request: pb.BatchTranslateTextRequest, context: CallContext, held: ExitStack
    ) -> tuple[Route, Leg]:
        """Work out the route of a call whose texts come one after the other, and its first leg.

        Args:
            request: the first message of the call.
            held: keeps its models until it is closed.

        Raises:
            DragomanError: the request is refused.
        """

        def check(catalog: Catalog) -> list[Checked]:
            return [validation.check_config(request, catalog)]

        [checked] = await self._leases.acquire(held, context, request, check)
        route = self._route(checked)
        return route, leg_over(route, context)

    async def _new_plan(
        self, request: pb.TranslateTextRequest, context: CallContext, held: ExitStack, *, wants_deltas: bool
    ) -> Plan:
        """Make the plan of a call whose languages are to be detected, whose route is new or whose models are away."""
        spoken = spoken_of(request, self._gate.catalog())
        spread = Spread((), {spoken.source: range(len(request.contents))}, {})
        if spoken.among:
            self._precheck(request, context, spoken.among, wants_deltas=wants_deltas)
            async with self._gate.limited(context):
                catalog, client = self._gate.catalog(), context.caller.name
                spread = await self._languages.spread(request, client, catalog, spoken.among)
        chosen_from: Catalog | None = None

        def check(catalog: Catalog) -> list[Checked]:
            nonlocal chosen_from
            chosen_from = catalog
            return [
                validation.check(request, catalog, self._settings, source=source, one_answer=not wants_deltas)
                for source in spread.texts
            ]

        checked = await self._leases.acquire(held, context, request, check)
        routes = list(map(self._route, checked))
        if not spoken.among and chosen_from is not None:
            self._routes.keep(request, chosen_from, routes[0])
        parts = [
            Part(
                leg_over(route, context, wants_deltas=wants_deltas, all_or_nothing=request.all_or_nothing),
                numbers if spoken.among else None,
            )
            for route, numbers in zip(routes, spread.texts.values(), strict=True)
        ]
        return Plan(parts, routes, spread.refused, spread.detected)

    def _route(self, checked: Checked) -> Route:
        translator = checked.chosen.model.in_memory().translator
        return validation.route(checked, self._settings, self._glossaries, translator)

    def _precheck(
        self, request: pb.TranslateTextRequest, context: CallContext, sources: Sequence[str], *, wants_deltas: bool
    ) -> None:
        """Refuse a request that is wrong, or that no model has room for, whatever the languages of its texts."""
        catalog = self._gate.catalog()
        validation.check_undetected(request, catalog, self._settings, sources, one_answer=not wants_deltas)
        options = RequestOptions(
            deadline_s=context.deadline_s, client=context.caller.name, priority=priority_of(request)
        )
        refusals: dict[ServedModel, DragomanError] = {}
        for source in sources:
            first = catalog.choose(request.model, source, request.target_language_code).first
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
