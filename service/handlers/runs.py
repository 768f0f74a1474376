"""Calls that are let in: each runs until its deadline, by one model or by several."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.calls.call import Call
from service.calls.mixed_call import MixedCall
from service.calls.pivot_call import PivotCall
from service.calls.text_worker import TextWorker
from service.calls.window import Window
from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.handlers.options import into_pivot
from service.handlers.plan import Plan
from service.handlers.validation import Order
from service.options import RequestOptions
from service.registry.catalog import ServedModel
from service.settings import Settings
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics

Running = Call | PivotCall | MixedCall


class Runs:
    """Begins calls whose models are held, and withdraws what of each is unfinished at its end, however that comes."""

    def __init__(self, gate: Gate, settings: Settings, metrics: Metrics, worker: TextWorker) -> None:
        """Begin without a call.

        Args:
            gate: of the server.
            settings: of the server.
            metrics: of the server.
            worker: of the server.
        """
        self._gate = gate
        self._metrics = metrics
        self._worker = worker
        # No token is shorter than a byte: one stream without a beam does not fill the queue of an idle engine.
        self._window = Window(settings.max_contents, settings.queue_source_tokens)

    @asynccontextmanager
    async def translating(self, plan: Plan, context: CallContext, record: CallStats) -> AsyncIterator[Running]:
        """Run a call that translates, all of whose texts are known.

        Args:
            plan: which models translate them.
            context: of the call.
            record: of the call.

        Raises:
            DeadlineExceededError: the deadline of the call passed meanwhile.
            DragomanError: what the server abandons its calls with.
        """
        calls = [(self._way(part.order, part.options, record), part.numbers) for part in plan.parts]
        running: Running = MixedCall(calls, plan.refused) if plan.languages else calls[0][0]
        async with self._gate.limited(context), running as call:
            yield call

    @asynccontextmanager
    async def feeding(
        self, order: Order, options: RequestOptions, context: CallContext, record: CallStats
    ) -> AsyncIterator[Call | PivotCall]:
        """Run a call that translates, whose texts come one after the other, and are answered so.

        Args:
            order: what is asked for.
            options: of all its texts.
            context: of the call.
            record: of the call.

        Raises:
            DragomanError: as :meth:`translating`.
        """
        running = self._way(order, options, record, self._window)
        async with self._gate.limited(context), running as call:
            yield call

    @asynccontextmanager
    async def scoring(
        self, order: Order, options: RequestOptions, context: CallContext, record: CallStats
    ) -> AsyncIterator[Call]:
        """Run a call that scores, by one model; the arguments and errors are those of :meth:`feeding`."""
        async with self._gate.limited(context), self._call(order.model, options, record) as call:
            yield call

    def _way(
        self, order: Order, options: RequestOptions, record: CallStats, window: Window | None = None
    ) -> Call | PivotCall:
        """Make a call without texts."""
        if (pivot := order.pivot) is None:
            return self._call(order.model, options, record, window)
        into = self._call(pivot.model, into_pivot(options, pivot), record, self._window)
        return PivotCall(into, self._call(order.model, options, record, self._window))

    def _call(
        self, model: ServedModel, options: RequestOptions, record: CallStats, window: Window | None = None
    ) -> Call:
        return Call(model, options, self._worker, self._metrics, record, window=window)
