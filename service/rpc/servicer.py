"""Proto to documents and back: validate, submit, await, answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any, Final, NoReturn, Protocol

import grpc
from grpc_status import rpc_status

from dragoman.errors import DeadlineExceededError, DragomanError, DrainingError, LoadingError, to_status
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServicer
from service.calls import admission, limits
from service.calls.call import Call
from service.calls.text_worker import TextWorker, unexpected
from service.calls.window import Window
from service.options import Decoding, Priority, RequestOptions
from service.registry.catalog import Catalog, ServedModel
from service.rpc import batch_stream, validation
from service.rpc.answer import listed, pieces, sendable, translated, whole
from service.rpc.batch_stream import BatchStream, Inbox
from service.rpc.request_parsing import parsed
from service.security import callers
from service.security.callers import Callers
from service.settings import Settings
from service.telemetry import access_log
from service.telemetry.access_log import AccessLog
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics

_DEADLINE_SLACK_S: Final = 0.05  # a client whose deadline passes cancels the call, at times before our own timer
_PRIORITY: Final = {pb.PRIORITY_INTERACTIVE: Priority.INTERACTIVE, pb.PRIORITY_BULK: Priority.BULK}


class Context(callers.Context, batch_stream.Context, access_log.Context, Protocol):
    """What is used of `grpc.aio.ServicerContext`, which has no types."""

    def time_remaining(self) -> float | None:
        """Seconds to the deadline of the call, 0 after it; None without one."""

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: Any) -> NoReturn:
        """End the call with an error: always raises."""


class Servicer(TranslationServicer):
    """The service dragoman.v1.Translation; answers UNAVAILABLE until :meth:`open` and after :meth:`close`."""

    def __init__(
        self, settings: Settings, metrics: Metrics, known: Callers | None = None, access_log: AccessLog | None = None
    ) -> None:
        """A servicer that is not open.

        Args:
            settings: of the server.
            metrics: of the server.
            known: who calls; None: nobody needs a key.
            access_log: told of each call at its end; None: nobody is.
        """
        self._settings = settings
        self._metrics = metrics
        self._callers = known or Callers(metrics)
        # Found once, not a call: each look-up takes a lock.
        self._counts = cache(metrics.requests_total.labels)
        self._durations = cache(metrics.request_duration_seconds.labels)
        self._refusals = cache(metrics.rejected_total.labels)
        self._access_log = access_log or AccessLog()
        self._catalog = Catalog([])
        self._refuse: Callable[[], None] = _refuse_loading
        self._limits: set[asyncio.Timeout] = set()  # of the calls that run
        self._inboxes: set[Inbox] = set()
        self._abandonment: DragomanError | None = None
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._worker = TextWorker(settings)

    def open(self, catalog: Catalog) -> None:
        """Take calls from now on, for these models; those that run keep the model that they have chosen."""
        self._catalog = catalog
        self._refuse = _refuse_nothing

    def close(self) -> None:
        """Refuse new calls from now on; those that run go on, with what of their texts has been read."""
        self._refuse = _refuse_draining
        for inbox in self._inboxes:
            inbox.close()

    def abandon(self, error: DragomanError) -> None:
        """End every call that still runs with this error, wherever it waits: its caller may not be reading."""
        self._abandonment = error
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)

    async def idle(self) -> None:
        """Wait until no call runs."""
        await self._idle.wait()

    async def TranslateText(self, request: pb.TranslateTextRequest, context: Context) -> pb.TranslateTextResponse:
        """Translate all texts and answer once."""
        async with self._answering("TranslateText", context, request) as record:
            async with self._admitted(request, context, record, wants_deltas=False) as call:
                await call.done()
                results = (await call.results(range(call.count))).values()
                errors = [result for result in results if isinstance(result, DragomanError)]
                if request.all_or_nothing:
                    limits.refuse_any(errors)
                record.failed_texts = len(errors)
            translations = [translated(result, record.model) for result in results]
            answer = pb.TranslateTextResponse(translations=translations, request_id=record.request_id)
            return whole(answer, self._settings.max_answer_bytes)

    async def StreamTranslateText(self, request: pb.TranslateTextRequest, context: Context) -> None:
        """Translate all texts and send the text as it is decoded."""
        async with (
            self._answering("StreamTranslateText", context, request) as record,
            self._admitted(request, context, record, wants_deltas=True) as call,
        ):
            unanswered = set(range(call.count))
            moved = unanswered.copy()
            while True:
                for index in sorted(moved & unanswered):
                    finished = call.finished(index)  # asked first: what comes later is the next round's
                    await self._send_deltas(context, index, call)
                    if finished:
                        await self._send_result(context, index, call, record, request.all_or_nothing)
                        unanswered.remove(index)
                if not unanswered:
                    return
                moved = await call.moved()

    async def BatchTranslateText(self, _: Any, context: Context) -> None:
        """Translate texts while more of them come, and answer each when it is finished, or in their order."""
        deadline_s = _deadline_s(context)
        async with self._answering("BatchTranslateText", context) as record, self._limited(deadline_s):
            with self._reading(context) as inbox:
                self._refuse()
                first = await inbox.next() or pb.BatchTranslateTextRequest()
                self._refuse()  # it may have been a long time
                _name(record, first.config.request_id)
                model, max_target_tokens = validation.check_config(first, self._catalog)
                record.admitted = True
                record.model = model.manifest.name
                options = _options_of(first.config, max_target_tokens, record.caller, deadline_s, default=Priority.BULK)
                # No token is shorter than a byte: one stream alone does not fill the queue of an idle engine.
                window = Window(self._settings.max_contents, self._settings.queue_source_tokens)
                call = Call(model, options, self._worker, self._metrics, record, window=window)
                with model.held():
                    async with call:
                        stream = BatchStream(
                            inbox, context, call, record, self._settings, in_order=first.config.in_order
                        )
                        await stream.run()

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        """List the models and their limits."""
        async with self._answering("ListModels", context) as record:
            self._refuse()
            validation.check_page(parsed(request))
            record.admitted = True
            return listed((model.manifest for model in self._catalog), request)

    @asynccontextmanager
    async def _answering(self, method: str, context: Context, request: Any = None) -> AsyncIterator[CallStats]:
        """Turn every end of a handler into one gRPC status, one count, one duration and one line of the access log.

        Yields:
            The record of the call, to be filled.
        """
        record = CallStats(method)
        _name(record, getattr(request, "request_id", ""))
        failure: DragomanError | None = None
        self._running += 1
        self._idle.clear()
        try:
            caller = self._callers.identify(context)
            record.caller = caller.name
            with self._callers.visit(caller):
                yield record
        except asyncio.CancelledError:
            record.code = _code_of_cancellation(context)
            raise
        except Exception as error:
            failure = error if isinstance(error, DragomanError) else unexpected(error)
            record.code, record.reason = failure.code, failure.reason
            if not record.admitted and failure is error:
                self._refusals(failure.reason).inc()
        finally:
            # Before the status leaves: a client that does not read keeps it from leaving.
            self._running -= 1
            if self._running == 0:
                self._idle.set()
            record.duration_s = time.monotonic() - record.began_s
            self._counts(method, record.code.name).inc()
            self._durations(method).observe(record.duration_s)
            self._access_log.enter(record, context)
        if failure is not None:
            status = rpc_status.to_status(to_status(failure, record.request_id))
            await context.abort(status.code, status.details, status.trailing_metadata)

    @asynccontextmanager
    async def _limited(self, deadline_s: float | None) -> AsyncIterator[None]:
        """End a handler at the deadline of its call, or when the server abandons it.

        Args:
            deadline_s: on the clock of `time.monotonic`, which is the event loop's, too; None: never.

        Raises:
            DeadlineExceededError: it passed.
            DragomanError: what the server abandons its calls with.
        """
        began_s = time.monotonic()
        limit = asyncio.timeout_at(deadline_s)
        try:
            async with limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.remove(limit)
        except DragomanError:  # some of ours are TimeoutErrors
            raise
        except TimeoutError:
            if self._abandonment is not None:
                raise self._abandonment.with_traceback(None) from None
            given_s = 0.0 if deadline_s is None else deadline_s - began_s
            raise DeadlineExceededError(_too_late(given_s)) from None

    @asynccontextmanager
    async def _admitted(
        self, request: pb.TranslateTextRequest, context: Context, record: CallStats, *, wants_deltas: bool
    ) -> AsyncIterator[Call]:
        """Queue the segments of a request; withdraw what is unfinished at the end, however that comes.

        Raises:
            DeadlineExceededError: the deadline of the call passed meanwhile.
            DragomanError: the request was refused.
        """
        model, options = self._screened(request, context, record, wants_deltas=wants_deltas)
        call = Call(model, options, self._worker, self._metrics, record)
        with model.held():
            async with self._limited(options.deadline_s), call:
                await call.add(request.contents)
                yield call

    def _screened(
        self, request: pb.TranslateTextRequest, context: Context, record: CallStats, *, wants_deltas: bool
    ) -> tuple[ServedModel, RequestOptions]:
        """Check a request, and whether it has prospects: before anything is set up for it, refusals are to be cheap.

        Raises:
            DragomanError: the request is refused.
        """
        self._refuse()
        record.texts = len(parsed(request).contents)
        model, max_target_tokens = validation.check(request, self._catalog, self._settings, one_answer=not wants_deltas)
        record.model = model.manifest.name
        deadline_s = _deadline_s(context)
        options = _options_of(
            request,
            max_target_tokens,
            record.caller,
            deadline_s,
            wants_deltas=wants_deltas,
            all_or_nothing=request.all_or_nothing,
        )
        admission.precheck(model.intake, options, request.contents)
        return model, options

    @contextmanager
    def _reading(self, context: Context) -> Iterator[Inbox]:
        """Read what a caller sends, until the server closes."""
        inbox = Inbox(context)
        self._inboxes.add(inbox)
        try:
            yield inbox
        finally:
            self._inboxes.remove(inbox)

    async def _send_deltas(self, context: Context, index: int, call: Call) -> None:
        """Send all of a text that is settled and was not yet sent."""
        while delta := call.delta(index):
            for piece in pieces(delta, self._settings.max_answer_bytes):
                await context.write(pb.StreamTranslateTextResponse(content_index=index, text_delta=piece))

    async def _send_result(
        self, context: Context, index: int, call: Call, record: CallStats, all_or_nothing: bool
    ) -> None:
        [made] = (await call.results([index])).values()
        result = sendable(made, self._settings.max_answer_bytes)
        if isinstance(result, DragomanError):
            if all_or_nothing:
                raise result
            record.failed_texts += 1
        await context.write(
            pb.StreamTranslateTextResponse(
                content_index=index, result=translated(result, record.model), request_id=record.request_id
            )
        )


def _refuse_loading() -> None:
    raise LoadingError("the models are being loaded")


def _refuse_nothing() -> None:
    pass


def _refuse_draining() -> None:
    raise DrainingError("the server is shutting down")


def _name(record: CallStats, request_id: str) -> None:
    """Call it as the caller does, if that is a name."""
    if validation.is_request_id(request_id):
        record.request_id = request_id


def _deadline_s(context: Context) -> float | None:
    """Give the deadline of a call on the clock of `time.monotonic`; None without one."""
    remaining_s = context.time_remaining()
    return None if remaining_s is None else time.monotonic() + remaining_s


def _options_of(
    asked: pb.TranslateTextRequest | pb.BatchTranslateTextConfig,
    max_target_tokens: int,
    client: str,
    deadline_s: float | None,
    *,
    wants_deltas: bool = False,
    all_or_nothing: bool = False,
    default: Priority = Priority.INTERACTIVE,
) -> RequestOptions:
    return RequestOptions(
        decoding=Decoding(wants_log_probability=asked.options.mean_log_probability),
        max_target_tokens=max_target_tokens,
        deadline_s=deadline_s,
        wants_deltas=wants_deltas,
        client=client,
        priority=_PRIORITY.get(asked.priority, default),
        html=asked.mime_type == validation.HTML,
        all_or_nothing=all_or_nothing,
    )


def _too_late(given_s: float) -> str:
    if given_s < 0.0005:  # it would read as 0.000
        return "the deadline of the call had passed before its work began"
    return f"not complete within the {given_s:.3f} s of the call"


def _code_of_cancellation(context: Context) -> grpc.StatusCode:
    """Tell a passed deadline from a client that left: gRPC cancels the handler for both."""
    remaining_s = context.time_remaining()
    expired = remaining_s is not None and remaining_s < _DEADLINE_SLACK_S
    return grpc.StatusCode.DEADLINE_EXCEEDED if expired else grpc.StatusCode.CANCELLED
