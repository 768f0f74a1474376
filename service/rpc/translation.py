"""dragoman.v1.Translation on gRPC."""

from typing import Any

import grpc.aio

from dragoman.v1 import translation_pb2 as pb
from service.handlers.delivery import deliver
from service.handlers.translation import TranslationHandlers
from service.rpc.answers import Answers
from service.rpc.methods import MANY, ONCE, Headers, Methods
from service.rpc.request_parsing import Messages
from service.wire import SERVICE, Protocol


class Translation:
    """The service for servers of `grpc.aio`.

    Args:
        handlers: of its methods.
        max_request_bytes: of one message.
    """

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int) -> None:
        self._handlers = handlers
        self._methods = Methods(handlers, max_request_bytes, Protocol.GRPC)

    def add_to(self, server: Any) -> None:
        """Add the service to a server that has not started."""
        signatures = {
            "TranslateText": (ONCE, self._translate, pb.TranslateTextRequest, pb.TranslateTextResponse),
            "StreamTranslateText": (MANY, self._stream, pb.TranslateTextRequest, pb.StreamTranslateTextResponse),
            "BatchTranslateText": (MANY, self._batch, pb.BatchTranslateTextRequest, pb.BatchTranslateTextResponse),
            "ScoreText": (ONCE, self._score, pb.ScoreTextRequest, pb.ScoreTextResponse),
            "DetectLanguage": (ONCE, self._detect, pb.DetectLanguageRequest, pb.DetectLanguageResponse),
            "ListModels": (ONCE, self._list_models, pb.ListModelsRequest, pb.ListModelsResponse),
            "ListGlossaries": (ONCE, self._list_glossaries, pb.ListGlossariesRequest, pb.ListGlossariesResponse),
        }
        methods = {name: self._methods.make(name, *signature) for name, signature in signatures.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        server.add_registered_method_handlers(SERVICE, methods)

    async def _translate(self, context: Any, headers: Headers) -> pb.TranslateTextResponse:
        request, call = await self._methods.request("TranslateText", context, headers)
        return await self._handlers.translate(request, call)

    async def _stream(self, context: Any, headers: Headers) -> None:
        request, call = await self._methods.request("StreamTranslateText", context, headers)
        await deliver(self._handlers.stream(request, call), Answers(context).send)

    async def _batch(self, context: Any, headers: Headers) -> None:
        answers = Answers(context)
        call = self._methods.begun(context, headers, answers.begin)
        await deliver(self._handlers.batch(Messages(context), call), answers.send)

    async def _score(self, context: Any, headers: Headers) -> pb.ScoreTextResponse:
        request, call = await self._methods.request("ScoreText", context, headers)
        return await self._handlers.score(request, call)

    async def _detect(self, context: Any, headers: Headers) -> pb.DetectLanguageResponse:
        request, call = await self._methods.request("DetectLanguage", context, headers)
        return await self._handlers.detect(request, call)

    async def _list_models(self, context: Any, headers: Headers) -> pb.ListModelsResponse:
        request, call = await self._methods.request("ListModels", context, headers)
        return await self._handlers.list_models(request, call)

    async def _list_glossaries(self, context: Any, headers: Headers) -> pb.ListGlossariesResponse:
        request, call = await self._methods.request("ListGlossaries", context, headers)
        return await self._handlers.list_glossaries(request, call)
