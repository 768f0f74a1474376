"""dragoman.v1.Translation on gRPC."""

from typing import Any

import grpc.aio
from google.protobuf.descriptor import FileDescriptor

from dragoman.v1 import translation_pb2 as pb
from service.handlers.translation import TranslationHandlers
from service.rpc.methods import Methods
from service.wire import SERVICE, Protocol


class Translation:
    """The service for servers of `grpc.aio`.

    Args:
        handlers: of its methods.
        max_request_bytes: of one message.
    """

    name: str = SERVICE
    file: FileDescriptor = pb.DESCRIPTOR

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int) -> None:
        self._handlers = handlers
        self._methods = Methods(handlers, max_request_bytes, Protocol.GRPC)

    def add_to(self, server: Any) -> None:
        """Add the service to a server that has not started."""
        make, handlers = self._methods.make, self._handlers
        of_batch = pb.BatchTranslateTextRequest, pb.BatchTranslateTextResponse
        methods = {"BatchTranslateText": make("BatchTranslateText", handlers.batch, *of_batch, many=True)}
        for name, handle, request, answer in (
            ("TranslateText", handlers.translate, pb.TranslateTextRequest, pb.TranslateTextResponse),
            ("StreamTranslateText", handlers.stream, pb.TranslateTextRequest, pb.StreamTranslateTextResponse),
            ("ScoreText", handlers.score, pb.ScoreTextRequest, pb.ScoreTextResponse),
            ("DetectLanguage", handlers.detect, pb.DetectLanguageRequest, pb.DetectLanguageResponse),
            ("ListModels", handlers.list_models, pb.ListModelsRequest, pb.ListModelsResponse),
            ("ListGlossaries", handlers.list_glossaries, pb.ListGlossariesRequest, pb.ListGlossariesResponse),
        ):
            methods[name] = make(name, handle, request, answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
