"""Proto to documents and back: validate, submit, await, answer."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, NoReturn, Protocol, TypeVar

import grpc
import structlog
from google.protobuf.message import Message
from grpc_status import rpc_status

from dragoman.bundle import Manifest
from dragoman.errors import (
    DeadlineExceededError,
    DragomanError,
    DrainingError,
    InternalError,
    LoadingError,
    to_status,
)
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServicer
from service import callers, validation
from service.call import Call
from service.catalog import Catalog
from service.malformed import parsed
from service.metrics import Metrics
from service.request import FinishReason
from service.settings import Settings
from service.terms import Priority, Terms
from service.translator import Document, TextResult

# Texts with more characters are split and put together off the event loop, which they would hold up.
_LARGE: Final = 8_192
_MANY: Final = 128  # the same in segments
_DEADLINE_SLACK_S: Final = 0.05  # a client whose deadline passes cancels the call, at times before our own timer
_FINISH_REASON: Final = {
    FinishReason.EOS: pb.FINISH_REASON_EOS,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.REPETITION: pb.FINISH_REASON_REPETITION,
}

_T = TypeVar("_T")
_log = structlog.get_logger()


class Context(callers.Context, Protocol):
    """What is used of `grpc.aio.ServicerContext`, which has no types."""

    def time_remaining(self) -> float | None:
        """Seconds to the deadline of the call, 0 after it; None without one."""

    async def abort(self, code: grpc.StatusCode, details: str, trailing_metadata: Any) -> NoReturn:
        """End the call with an error: always raises."""

    async def write(self, message: Message) -> None:
        """Send one message of a stream, as soon as the client takes it."""


class Servicer(TranslationServicer):
    """The service dragoman.v1.Translation; answers UNAVAILABLE until :meth:`open` and after :meth:`close`."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._catalog = Catalog([])
        self._refuse: Callable[[], None] = _refuse_loading
        self._calls: set[Call] = set()
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        # One thread: more would only take the interpreter lock from the event loop more often.
        self._large_texts = ThreadPoolExecutor(1, thread_name_prefix="large-texts")

    def open(self, catalog: Catalog) -> None:
        """Take calls from now on, for these models; those that run keep the model that they have chosen."""
        self._catalog = catalog
        self._refuse = _refuse_nothing

    def close(self) -> None:
        """Refuse new calls from now on; those that run go on."""
        self._refuse = _refuse_draining

    def abandon(self, error: DragomanError) -> None:
        """Answer every call that still waits with this error."""
        for call in self._calls:
            call.fail(error)

    async def idle(self) -> None:
        """Wait until no call runs."""
        await self._idle.wait()

    async def TranslateText(self, request: pb.TranslateTextRequest, context: Context) -> pb.TranslateTextResponse:
        """Translate all texts and answer once."""
        async with self._answering("TranslateText", context):
            async with self._admitted(request, context, wants_deltas=False) as (call, model):
                await call.complete()
                large = _is_large(request.contents)
                results = await self._run(large, lambda: [document.result() for document in call.documents])
            return pb.TranslateTextResponse(translations=[_translated(result, model) for result in results])

    async def StreamTranslateText(self, request: pb.TranslateTextRequest, context: Context) -> None:
        """Translate all texts and send the text as it is decoded."""
        async with (
            self._answering("StreamTranslateText", context),
            self._admitted(request, context, wants_deltas=True) as (call, model),
        ):
            unanswered = set(range(len(call.documents)))
            moved = unanswered.copy()
            while True:
                for index in sorted(moved & unanswered):
                    finished = call.finished(index)  # asked first: what comes later is the next round's
                    await _send_deltas(context, index, call.documents[index])
                    if finished:
                        await self._send_result(context, index, call.documents[index], model)
                        unanswered.remove(index)
                if not unanswered:
                    return
                moved = await call.moved()

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        """List the models and their limits."""
        async with self._answering("ListModels", context):
            with self._counting_refusals():
                self._refuse()
                parsed(request)
            return pb.ListModelsResponse(models=[_model(model.manifest) for model in self._catalog])

    @asynccontextmanager
    async def _answering(self, method: str, context: Context) -> AsyncIterator[None]:
        """Turn every end of a handler into one gRPC status, one count and one duration."""
        started_s = time.perf_counter()
        code = grpc.StatusCode.OK
        self._running += 1
        self._idle.clear()
        try:
            yield
        except asyncio.CancelledError:
            code = _code_of_cancellation(context)
            raise
        except Exception as error:
            known = error if isinstance(error, DragomanError) else _unexpected(error)
            code = known.code
            status = rpc_status.to_status(to_status(known))
            await context.abort(status.code, status.details, status.trailing_metadata)
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()
            self._metrics.requests_total.labels(method, code.name).inc()
            self._metrics.request_duration_seconds.labels(method).observe(time.perf_counter() - started_s)

    @asynccontextmanager
    async def _admitted(
        self, request: pb.TranslateTextRequest, context: Context, *, wants_deltas: bool
    ) -> AsyncIterator[tuple[Call, str]]:
        """Queue the segments of a request; withdraw what is unfinished at the end, however that comes.

        Yields:
            The call, and the name of its model.

        Raises:
            DeadlineExceededError: the deadline of the call passed meanwhile.
            DragomanError: the request was refused.
        """
        remaining_s = context.time_remaining()
        try:
            async with asyncio.timeout(remaining_s):
                with self._counting_refusals():
                    call, model = await self._admit(request, context, remaining_s, wants_deltas)
                self._calls.add(call)
                try:
                    yield call, model
                finally:
                    self._calls.remove(call)
                    call.cancel()
        except TimeoutError:
            raise DeadlineExceededError(f"not complete within the {remaining_s:.3f} s of the call") from None

    async def _admit(
        self, request: pb.TranslateTextRequest, context: Context, remaining_s: float | None, wants_deltas: bool
    ) -> tuple[Call, str]:
        self._refuse()
        deadline_s = None if remaining_s is None else time.monotonic() + remaining_s
        model, max_target_tokens = validation.check(parsed(request), self._catalog, self._settings)
        terms = Terms(
            max_target_tokens,
            deadline_s,
            wants_deltas,
            request.options.mean_log_probability,
            callers.identify(context).name,
            Priority.BULK if request.priority == pb.PRIORITY_BULK else Priority.INTERACTIVE,
        )
        call = Call(model.intake, self._metrics)

        def prepare() -> list[Document]:
            return [
                model.translator.prepare(text, terms, partial(call.progress, index))
                for index, text in enumerate(request.contents)
            ]

        with model.held():
            call.submit(await self._run(_is_large(request.contents), prepare))
        return call, model.manifest.name

    async def _send_result(self, context: Context, index: int, document: Document, model: str) -> None:
        result = await self._run(len(document.segments) > _MANY, document.result)
        await context.write(pb.StreamTranslateTextResponse(content_index=index, result=_translated(result, model)))

    async def _run(self, large: bool, work: Callable[[], _T]) -> _T:
        """Do work here, or off the event loop if it is large."""
        if not large:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._large_texts, work)

    @contextmanager
    def _counting_refusals(self) -> Iterator[None]:
        try:
            yield
        except DragomanError as error:
            self._metrics.rejected_total.labels(error.reason).inc()
            raise


def _refuse_loading() -> None:
    raise LoadingError("the models are being loaded")


def _refuse_nothing() -> None:
    pass


def _refuse_draining() -> None:
    raise DrainingError("the server is shutting down")


async def _send_deltas(context: Context, index: int, document: Document) -> None:
    """Send all text of a document that is settled and was not yet sent."""
    while delta := document.grow():
        await context.write(pb.StreamTranslateTextResponse(content_index=index, text_delta=delta))


def _is_large(contents: Sequence[str]) -> bool:
    return sum(map(len, contents)) > _LARGE


def _code_of_cancellation(context: Context) -> grpc.StatusCode:
    """Tell a passed deadline from a client that left: gRPC cancels the handler for both."""
    remaining_s = context.time_remaining()
    expired = remaining_s is not None and remaining_s < _DEADLINE_SLACK_S
    return grpc.StatusCode.DEADLINE_EXCEEDED if expired else grpc.StatusCode.CANCELLED


def _unexpected(error: Exception) -> InternalError:
    """Log an error of ours: its class and where, not its message, which may hold a text."""
    _log.error("unexpected error", error=type(error).__name__, at=traceback.format_tb(error.__traceback__))
    return InternalError("the server failed; its log says more")


def _translated(result: TextResult, model: str) -> pb.TranslatedText:
    return pb.TranslatedText(
        translated_text=result.text,
        model=model,
        source_tokens=result.source_tokens,
        target_tokens=result.target_tokens,
        finish_reason=_FINISH_REASON[result.finish_reason],
        segments=result.segments,
        mean_log_probability=result.mean_log_probability,
    )


def _model(manifest: Manifest) -> pb.Model:
    return pb.Model(
        name=manifest.name,
        source_language_code=manifest.source_language,
        target_language_code=manifest.target_language,
        precision=manifest.precision,
        max_source_tokens=manifest.max_source_tokens,
        max_target_tokens=manifest.max_target_tokens,
        vocabulary_size=manifest.vocabulary_size,
        checkpoint_sha256=manifest.provenance.checkpoint_sha256,
    )
