"""Makes the calls of requests that are let in."""

from collections.abc import Sequence

from service.calls.call import Call, Part
from service.calls.large_call import LargeCall
from service.calls.leg import Leg
from service.calls.text_worker import SMALL, TextWorker
from service.calls.window import Window
from service.handlers.plan import Plan
from service.settings import Settings
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.pair import Pair


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
