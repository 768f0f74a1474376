"""dragoman.v1.Translation on gRPC: each call becomes a call of a handler, and each of its ends a status.

A call without a valid API key ends at its headers: no byte of its messages is read, kept or parsed.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import grpc.aio
from grpc_status import rpc_status

from dragoman.errors import DragomanError, to_status
from dragoman.v1 import translation_pb2 as pb
from service.handlers.context import CallContext, tell_nobody
from service.handlers.delivery import deliver
from service.handlers.translation import TranslationHandlers
from service.rpc.answers import Answers
from service.rpc.request_parsing import Messages, arrived, parser
from service.security.callers import Caller, Metadata
from service.wire import SERVICE


class _Headers(NamedTuple):
    caller: Caller
    metadata: Metadata


_Serve = Callable[[Any, _Headers], Awaitable[Any]]
# All methods read their messages themselves: gRPC does not say when there is none, or when it is slow.
_ONCE: Final = grpc.stream_unary_rpc_method_handler
_MANY: Final = grpc.stream_stream_rpc_method_handler


class Translation:
    """The service for servers of `grpc.aio`.

    Args:
        handlers: of its methods.
        max_request_bytes: of one message.
    """

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int) -> None:
        self._handlers = handlers
        self._max_request_bytes = max_request_bytes

    def add_to(self, server: Any) -> None:
        """Add the service to a server that has not started."""
        glossaries_request, glossaries_answer = pb.ListGlossariesRequest, pb.ListGlossariesResponse
        text_request, batch_request = pb.TranslateTextRequest, pb.BatchTranslateTextRequest
        methods = dict(
            [
                self._method("TranslateText", _ONCE, self._translate, text_request, pb.TranslateTextResponse),
                self._method("StreamTranslateText", _MANY, self._stream, text_request, pb.StreamTranslateTextResponse),
                self._method("BatchTranslateText", _MANY, self._batch, batch_request, pb.BatchTranslateTextResponse),
                self._method("ScoreText", _ONCE, self._score, pb.ScoreTextRequest, pb.ScoreTextResponse),
                self._method(
                    "DetectLanguage", _ONCE, self._detect, pb.DetectLanguageRequest, pb.DetectLanguageResponse
                ),
                self._method("ListModels", _ONCE, self._list_models, pb.ListModelsRequest, pb.ListModelsResponse),
                self._method("ListGlossaries", _ONCE, self._list_glossaries, glossaries_request, glossaries_answer),
            ]
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        server.add_registered_method_handlers(SERVICE, methods)

    def _method(self, name: str, kind: Any, serve: _Serve, request: Any, answer: Any) -> tuple[str, Any]:
        parse = parser(request.FromString, self._max_request_bytes)
        return name, kind(self._guarded(name, serve), parse, answer.SerializeToString)

    def _guarded(self, method: str, serve: _Serve) -> Callable[[Any, Any], Awaitable[Any]]:
        """Identify the caller of a method first of all, and make a status of each error."""

        async def answer(_: Any, context: Any) -> Any:
            metadata = context.invocation_metadata() or ()
            try:
                caller = self._handlers.identify(method, context.peer(), metadata)
                return await serve(context, _Headers(caller, metadata))
            except DragomanError as error:
                status = rpc_status.to_status(to_status(error, error.request_id))
            return await context.abort(status.code, status.details, status.trailing_metadata)

        return answer

    async def _translate(self, context: Any, headers: _Headers) -> pb.TranslateTextResponse:
        request, call = await self._request("TranslateText", context, headers)
        return await self._handlers.translate(request, call)

    async def _stream(self, context: Any, headers: _Headers) -> None:
        request, call = await self._request("StreamTranslateText", context, headers)
        await deliver(self._handlers.stream(request, call), Answers(context).send)

    async def _batch(self, context: Any, headers: _Headers) -> None:
        answers = Answers(context)
        call = _begun(context, headers, answers.begin)
        await deliver(self._handlers.batch(Messages(context), call), answers.send)

    async def _score(self, context: Any, headers: _Headers) -> pb.ScoreTextResponse:
        request, call = await self._request("ScoreText", context, headers)
        return await self._handlers.score(request, call)

    async def _detect(self, context: Any, headers: _Headers) -> pb.DetectLanguageResponse:
        request, call = await self._request("DetectLanguage", context, headers)
        return await self._handlers.detect(request, call)

    async def _list_models(self, context: Any, headers: _Headers) -> pb.ListModelsResponse:
        request, call = await self._request("ListModels", context, headers)
        return await self._handlers.list_models(request, call)

    async def _list_glossaries(self, context: Any, headers: _Headers) -> pb.ListGlossariesResponse:
        request, call = await self._request("ListGlossaries", context, headers)
        return await self._handlers.list_glossaries(request, call)

    async def _request(self, method: str, context: Any, headers: _Headers) -> tuple[Any, CallContext]:
        """Wait for the one message of a call, which begins with it.

        Raises:
            DragomanError: there is no valid one; the call is over.
        """
        request = await arrived(context)
        call = _begun(context, headers)
        if isinstance(request, DragomanError):
            self._handlers.refuse(method, call, request)
        return request, call


def _begun(context: Any, headers: _Headers, accept: Callable[[], Awaitable[None]] = tell_nobody) -> CallContext:
    remaining_s = context.time_remaining()
    return CallContext(
        headers.caller,
        deadline_s=None if remaining_s is None else time.monotonic() + remaining_s,
        metadata=headers.metadata,
        accept=accept,
    )
