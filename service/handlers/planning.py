"""Checks requests, and whether they have prospects: before anything is set up for one, refusals are to be cheap."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls import admission
from service.calls.spread import Spread
from service.handlers import validation
from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.handlers.held_models import HeldModels
from service.handlers.languages import Detection
from service.handlers.options import options_of, undetected_options_of
from service.handlers.plan import Part, Plan
from service.handlers.spoken import spoken_of
from service.handlers.validation import Checked
from service.registry.catalog import Catalog, ServedModel
from service.registry.glossaries import Glossaries
from service.settings import Settings
from service.telemetry.call_stats import CallStats


class Planner:
    """Says which texts of a request go to which model, all to one where it says their language.

    Args:
        gate: of the server.
        held: holds the models of calls.
        settings: the limits.
        glossaries: that are stored.
        languages: detects them.
    """

    def __init__(
        self, gate: Gate, held: HeldModels, settings: Settings, glossaries: Glossaries, languages: Detection
    ) -> None:
        self._gate = gate
        self._held = held
        self._settings = settings
        self._glossaries = glossaries
        self._languages = languages

    @asynccontextmanager
    async def planned(
        self, request: pb.TranslateTextRequest, context: CallContext, record: CallStats, *, wants_deltas: bool
    ) -> AsyncIterator[Plan]:
        """Make the plan of a call whose texts are all known, and hold its models.

        Args:
            request: of the call.
            context: of the call.
            record: of the call.
            wants_deltas: whether its answer is a stream.

        Raises:
            DragomanError: the request is refused.
        """
        record.texts = len(request.contents)
        spoken = spoken_of(request, self._gate.catalog())
        spread = Spread((), {spoken.source: range(len(request.contents))}, {})
        if spoken.among:
            self._precheck(request, context, spoken.among, wants_deltas=wants_deltas)
            async with self._gate.limited(context):
                catalog, client = self._gate.catalog(), context.caller.name
                spread = await self._languages.spread(request, client, catalog, spoken.among)

        def check(catalog: Catalog) -> list[Checked]:
            return [
                validation.check(request, catalog, self._settings, source=source, one_answer=not wants_deltas)
                for source in spread.texts
            ]

        async with self._held.held(context, request, check) as checked:
            parts = [
                self._part(request, context, each, numbers, wants_deltas=wants_deltas)
                for each, numbers in zip(checked, spread.texts.values(), strict=True)
            ]
            plan = Plan(parts, spread.refused, spread.detected)
            record.model = plan.path
            for order, options, numbers in plan.parts:
                contents = [request.contents[number] for number in numbers] if plan.languages else request.contents
                admission.precheck(order.first.intake, options, contents)
            yield plan

    def _precheck(
        self, request: pb.TranslateTextRequest, context: CallContext, sources: Sequence[str], *, wants_deltas: bool
    ) -> None:
        """Refuse a request that is wrong, or that no model has room for, whatever the languages of its texts."""
        catalog = self._gate.catalog()
        validation.check_undetected(request, catalog, self._settings, sources, one_answer=not wants_deltas)
        options = undetected_options_of(request, context)
        refusals: dict[ServedModel, DragomanError] = {}
        for source in sources:
            first = catalog.choose(request.model, source, request.target_language_code).first
            if first.pipeline is None:
                return
            if first not in refusals:
                try:
                    admission.precheck(first.intake, options, ())
                except DragomanError as refusal:
                    refusals[first] = refusal
                else:
                    return
        raise next(iter(refusals.values()))

    def _part(
        self,
        request: pb.TranslateTextRequest,
        context: CallContext,
        checked: Checked,
        numbers: Sequence[int],
        *,
        wants_deltas: bool,
    ) -> Part:
        """Make the part of texts that go to one model."""
        order = validation.order(checked, self._settings, self._glossaries)
        options = options_of(request, order, context, wants_deltas=wants_deltas, all_or_nothing=request.all_or_nothing)
        return Part(order, options, numbers)
