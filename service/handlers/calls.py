"""Makes the calls of requests that are let in: by one model, or by several."""

from collections.abc import Sequence

from service.calls.call import Call
from service.calls.large_call import LargeCall
from service.calls.mixed_call import MixedCall
from service.calls.pivot_call import PivotCall
from service.calls.text_worker import SMALL, TextWorker
from service.calls.window import Window
from service.handlers.plan import Plan
from service.handlers.route import Route, into_pivot
from service.options import RequestOptions
from service.settings import Settings
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.pair import Pair

Running = Call | PivotCall | MixedCall


class Calls:
    """Makes calls without texts, whose models are held by whoever asks.

    Args:
        settings: the limits.
        metrics: of the server.
        worker: of the server.
    """

    def __init__(self, settings: Settings, metrics: Metrics, worker: TextWorker) -> None:
        self._metrics = metrics
        self._worker = worker
        # No token is shorter than a byte: one stream without a beam does not fill the queue of an idle engine.
        self._window = Window(settings.max_contents, settings.queue_source_tokens)

    def planned(self, plan: Plan, record: CallStats, contents: Sequence[str]) -> Running:
        """Make a call that translates, all of whose texts are known."""
        if plan.languages:
            calls = [(self._large(route, options, record), numbers) for route, options, numbers in plan.parts]
            return MixedCall(calls, plan.refused)
        [(route, options, _)] = plan.parts
        if route.chosen.pivot is None and sum(map(len, contents)) <= SMALL:
            return Call(route.model, options, self._worker, self._metrics, record)
        return self._large(route, options, record)

    def fed(self, route: Route, options: RequestOptions, record: CallStats) -> LargeCall | PivotCall:
        """Make a call that translates, whose texts come one after the other, and are answered so."""
        return self._large(route, options, record, self._window)

    def scoring(self, route: Route, options: RequestOptions, record: CallStats, pairs: Sequence[Pair]) -> Call:
        """Make a call that scores."""
        kind = Call if sum([pair.characters for pair in pairs]) <= SMALL else LargeCall
        return kind(route.model, options, self._worker, self._metrics, record)

    def _large(
        self, route: Route, options: RequestOptions, record: CallStats, window: Window | None = None
    ) -> LargeCall | PivotCall:
        pivot, worker, metrics = route.chosen.pivot, self._worker, self._metrics
        if pivot is None:
            return LargeCall(route.model, options, worker, metrics, record, window=window)
        into = LargeCall(pivot.model, into_pivot(options, pivot), worker, metrics, record, window=self._window)
        return PivotCall(into, LargeCall(route.model, options, worker, metrics, record, window=self._window))
