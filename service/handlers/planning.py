"""Checks requests, and whether they have prospects: before anything is set up for one, refusals are to be cheap."""

from collections.abc import Mapping, Sequence

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls import admission
from service.handlers import validation
from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.handlers.languages import Detection
from service.handlers.options import options_of, undetected_options_of
from service.handlers.plan import Part, Plan
from service.handlers.spoken import spoken_of
from service.registry.catalog import ServedModel
from service.registry.glossaries import Glossaries
from service.settings import Settings
from service.telemetry.call_stats import CallStats


class Planner:
    """Says which texts of a request go to which model, all to one where it says their language.

    Args:
        gate: of the server.
        settings: the limits.
        glossaries: that are stored.
        languages: detects them.
    """

    def __init__(self, gate: Gate, settings: Settings, glossaries: Glossaries, languages: Detection) -> None:
        self._gate = gate
        self._settings = settings
        self._glossaries = glossaries
        self._languages = languages

    async def plan(
        self, request: pb.TranslateTextRequest, context: CallContext, record: CallStats, *, wants_deltas: bool
    ) -> Plan:
        """Make the plan of a call whose texts are all known.

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
        if not spoken.among:
            whole = {spoken.source: range(len(request.contents))}
            plan = Plan(self._parts(request, context, whole, wants_deltas=wants_deltas))
        else:
            self._precheck(request, context, spoken.among, wants_deltas=wants_deltas)
            async with self._gate.limited(context):
                catalog, client = self._gate.catalog(), context.caller.name
                spread = await self._languages.spread(request, client, catalog, spoken.among)
            parts = self._parts(request, context, spread.texts, wants_deltas=wants_deltas)
            plan = Plan(parts, spread.refused, spread.detected)
        record.model = plan.path
        for order, options, numbers in plan.parts:
            contents = [request.contents[number] for number in numbers] if plan.languages else request.contents
            admission.precheck(order.first.intake, options, contents)
        return plan

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
            if first not in refusals:
                try:
                    admission.precheck(first.intake, options, ())
                except DragomanError as refusal:
                    refusals[first] = refusal
                else:
                    return
        raise next(iter(refusals.values()))

    def _parts(
        self,
        request: pb.TranslateTextRequest,
        context: CallContext,
        texts: Mapping[str, Sequence[int]],
        *,
        wants_deltas: bool,
    ) -> list[Part]:
        """Make the parts of texts by their languages; a model may have come or gone while these were detected."""
        catalog, parts = self._gate.catalog(), []
        for source, numbers in texts.items():
            order = validation.check(
                request, catalog, self._settings, self._glossaries, source=source, one_answer=not wants_deltas
            )
            options = options_of(
                request, order, context, wants_deltas=wants_deltas, all_or_nothing=request.all_or_nothing
            )
            parts.append(Part(order, options, numbers))
        return parts
