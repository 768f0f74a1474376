"""The methods of dragoman.v1.Translation: validate, admit, await, answer."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import NoReturn

from dragoman.errors import DeadlineExceededError, DragomanError, RequestCancelledError, UnauthenticatedError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Call
from service.calls.limits import bad_texts, refuse_any
from service.calls.text_worker import Result, TextWorker
from service.failures import told
from service.handlers import validation
from service.handlers.answer import detections, listed, pieces, sendable, whole
from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.handlers.glossaries import Glossaries, glossaries_of
from service.handlers.languages import Detection
from service.handlers.planning import Planner
from service.handlers.untranslated import says_target, texts_of
from service.registry.residency import Residency
from service.security.access import Caller, Callers
from service.security.hosts import host_of_peer
from service.settings import Settings
from service.telemetry.access_log import AccessLog, CallStats
from service.telemetry.metrics import Metrics
from service.text.detection import Guess
from service.wire import CallProtocol, Metadata


class TranslationHandlers:
    """Functions of a request and the context of its call, which return or yield messages.

    A transport identifies the caller by the headers, reads the request, calls one handler and sends its answer, with
    `delivery.deliver` where there are several messages. Each handler raises a DragomanError that names the request; a
    call is counted and logged at its end, in every case. Plugins have further handlers, see `methods`, which use the
    attributes.

    Attributes:
        gate: lets calls in.
        settings: settings of the server.
        glossaries: the stored glossaries.
        languages: detects languages.
        planner: makes calls.
    """

    def __init__(
        self,
        gate: Gate,
        settings: Settings,
        metrics: Metrics,
        callers: Callers | None = None,
        access_log: AccessLog | None = None,
        glossaries: Glossaries | None = None,
        memory: Residency | None = None,
    ) -> None:
        """Make handlers that take calls when the gate is open.

        Args:
            callers: who may call, and how much; None: everyone.
            access_log: notes each call at its end; None: only the metrics do.
            glossaries: the stored glossaries; None: there are none.
            memory: brings models into memory; None: all models are in memory.
        """
        self.gate = gate
        self.settings = settings
        self.glossaries = glossaries or glossaries_of()
        self._callers = callers
        self._access_log = access_log or AccessLog(metrics)
        worker = TextWorker(settings)
        self.languages = Detection(settings, metrics, worker)
        self.planner = Planner(gate, settings, metrics, worker, self.glossaries, self.languages, memory)

    def identify(
        self,
        method: str,
        peer: str,
        metadata: Metadata,
        protocol: CallProtocol = CallProtocol.GRPC,
        request_id: str = "",
    ) -> Caller:
        """Identify the caller by the headers of the call: once, before any message is read.

        Args:
            method: name of the method, such as "TranslateText".
            peer: address of the client, as gRPC writes it.
            metadata: metadata of the call, keys in lower case.
            request_id: id of the call in the transport; "": none.

        Raises:
            UnauthenticatedError: a key is needed, and there is none or an unknown one; the call is over, and logged.
        """
        if self._callers is None:
            return Caller(host_of_peer(peer))
        try:
            return self._callers.identify(metadata)
        except UnauthenticatedError as error:
            record = CallStats(method, protocol, caller=host_of_peer(peer), code=error.code, reason=error.reason)
            name_call(record, request_id)
            error.request_id = record.request_id
            self._access_log.refused(error)
            self._access_log.ended(record, metadata, at_headers=True)
            raise

    def knows(self, metadata: Metadata) -> bool:
        """Tell whether :meth:`identify` would find a caller, and log nothing."""
        try:
            if self._callers is not None:
                self._callers.identify(metadata)
        except UnauthenticatedError:
            return False
        return True

    def refuse(self, method: str, context: CallContext, error: DragomanError) -> NoReturn:
        """End a call that came without a valid request.

        Raises:
            DragomanError: the error; or the error with which every call is refused now.
        """
        with self.opened(method, context):
            self.gate.catalog()
            raise error
        raise AssertionError("the error was raised")

    async def translate(
        self, request: pb.TranslateTextRequest, context: CallContext, *, or_return: bool = False
    ) -> pb.TranslateTextResponse:
        """Translate all texts and answer once.

        Args:
            or_return: for protocols whose clients expect each text back, see `untranslated.py`: a text that is in the
                target language already is its own translation, and the error of any other text ends the call.
        """
        with self.opened("TranslateText", context, request.request_id) as record, ExitStack() as held:
            if or_return and says_target(request):
                texts = self._untranslated(request, record)
                return pb.TranslateTextResponse(translations=texts, request_id=record.request_id)
            plan, call = await self.planner.translation(request, context, record, held)
            async with self.gate.limited(context), call:
                await call.add(request.contents)
                results = await call.done()
            translated = pb.TranslateTextResponse(translations=plan.answers(results), request_id=record.request_id)
            answer = whole(translated, self.settings.max_answer_bytes)
            if or_return:
                record.failed_texts = 0  # the answer has no errors of single texts
                texts = texts_of(request, answer)
                return pb.TranslateTextResponse(translations=texts, request_id=record.request_id)
            return answer

    async def stream(
        self, request: pb.TranslateTextRequest, context: CallContext
    ) -> AsyncGenerator[pb.StreamTranslateTextResponse, None]:
        """Translate all texts and yield the text as it is decoded."""
        with self.opened("StreamTranslateText", context, request.request_id) as record, ExitStack() as held:
            plan, call = await self.planner.translation(request, context, record, held, wants_deltas=True)
            async with self.gate.limited(context), call:
                await call.add(request.contents)
                unanswered = set(range(call.count))
                moved = unanswered.copy()
                while True:
                    for number in sorted(moved & unanswered):
                        finished = call.finished(number)  # asked first: later text belongs to the next round
                        for piece in self._new_pieces(call, number):
                            yield pb.StreamTranslateTextResponse(content_index=number, text_delta=piece)
                        if finished:
                            result = await self._streamed(call, number, record, request.all_or_nothing)
                            [answer] = plan.answers({number: result})
                            yield pb.StreamTranslateTextResponse(
                                content_index=number, result=answer, request_id=record.request_id
                            )
                            unanswered.remove(number)
                    if not unanswered:
                        return
                    moved = await call.moved()

    async def detect(self, request: pb.DetectLanguageRequest, context: CallContext) -> pb.DetectLanguageResponse:
        """Estimate which languages texts may be in."""
        with self.opened("DetectLanguage", context, request.request_id) as record:
            self.gate.catalog()
            record.texts = len(request.contents)
            validation.check_detection(request, self.settings)
            record.admitted = True
            return detections(await self.rankings(request, context), record.request_id)

    async def rankings(self, request: pb.DetectLanguageRequest, context: CallContext) -> list[list[Guess]]:
        """Estimate which languages the texts of a running call may be in, the most probable first."""
        async with self.gate.limited(context):
            return await self.languages.ranked(request, context.caller.name, self.gate.catalog())

    async def list_models(self, request: pb.ListModelsRequest, context: CallContext) -> pb.ListModelsResponse:
        """List the models and their limits."""
        with self.opened("ListModels", context) as record:
            catalog = self.gate.catalog()
            validation.check_page(request)
            record.admitted = True
            return listed((model.manifest for model in catalog), request)

    @contextmanager
    def opened(self, method: str, context: CallContext, request_id: str = "") -> Iterator[CallStats]:
        """Begin a call, and turn every end of it into one error, one count, one duration and one line of the log.

        Args:
            request_id: id of the request by its caller; ignored where it is not valid.

        Yields:
            The record of the call, to be filled.

        Raises:
            DragomanError: the error with which the call ended: a copy, with the id of the request.
        """
        record = CallStats(method, context.protocol, caller=context.caller.name)
        for name in (context.request_id, request_id):
            if name:
                name_call(record, name)
        failure: DragomanError | None = None
        try:
            with self.gate.counting():
                if self._callers is None:  # no key, no quota
                    yield record
                else:
                    with self._callers.visit(context.caller):
                        yield record
        except (asyncio.CancelledError, GeneratorExit):  # deadline passed, client left, or not read on
            record.code = (DeadlineExceededError if context.late else RequestCancelledError).code
            raise
        except Exception as error:
            failure = copy(told(error))
            failure.request_id = record.request_id
            record.code, record.reason = failure.code, failure.reason
            if not record.admitted and isinstance(error, DragomanError):
                self._access_log.refused(failure)
        finally:
            # Before the status is sent: a client that does not read would delay it.
            self._access_log.ended(record, context.metadata)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # else the error and this frame would keep each other alive

    def _untranslated(self, request: pb.TranslateTextRequest, record: CallStats) -> list[pb.TranslatedText]:
        """Give the texts of an open call back, within the limits of every call."""
        if not (catalog := self.gate.catalog()).knows(target := request.target_language_code):
            catalog.choose("", target, target)  # raises the error
        record.texts = len(request.contents)
        validation.check_texts(request, self.settings, one_answer=True)
        refuse_any(list(bad_texts(enumerate(request.contents), self.settings).values()))
        record.admitted = True
        return [pb.TranslatedText(translated_text=text) for text in request.contents]

    def _new_pieces(self, call: Call, number: int) -> Iterator[str]:
        """Yield the new part of a translation that can no longer change, in pieces that fit a message."""
        while delta := call.delta(number):
            yield from pieces(delta, self.settings.max_answer_bytes)

    async def _streamed(self, call: Call, number: int, record: CallStats, all_or_nothing: bool) -> Result:
        """Give the translation of a finished text, or its error; raises the error where all or nothing is wanted."""
        [made] = (await call.results([number])).values()
        result = sendable(made, self.settings.max_answer_bytes)
        if isinstance(result, DragomanError):
            if all_or_nothing:
                raise result
            record.failed_texts += 1
        return result


def name_call(record: CallStats, request_id: str) -> None:
    """Use the request id of the caller, if it is valid."""
    if validation.is_request_id(request_id):
        record.request_id = request_id
