import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_status import rpc_status

from dragoman import errors
from dragoman.v1 import translation_pb2, translation_pb2_grpc


class Server(translation_pb2_grpc.TranslationServicer):
    """A real gRPC server with one worker, whose translations are the texts in capitals.

    `on_request(number)`, counted from 1, may take its time, or raise the error to answer with.
    """

    def __init__(self) -> None:
        self.on_request: Callable[[int], None] = lambda number: None
        self.requests: list[translation_pb2.TranslateTextRequest] = []
        self.connections: set[str] = set()
        self.address = ""
        self._lock = threading.Lock()

    def TranslateText(self, request, context):
        if request.contents == [" "]:  # asked before a load, and not counted
            return self._told(request, context)
        self._receive(request, context)
        return translation_pb2.TranslateTextResponse(translations=map(self.translated, request.contents))

    def _told(self, request, context):
        names = [model.name for model in self._models()]
        if request.model not in ("", *names):
            error = errors.UnknownModelError(f"no model {request.model!r}; there are: {', '.join(names)}")
            context.abort_with_status(rpc_status.to_status(errors.to_status(error)))
        name = request.model or f"{request.source_language_code}-{request.target_language_code}"
        return translation_pb2.TranslateTextResponse(translations=[translation_pb2.TranslatedText(model=name)])

    def StreamTranslateText(self, request, context):
        self._receive(request, context)
        for index, text in enumerate(request.contents):
            translation = self.translated(text)
            for word in translation.translated_text.split():
                yield translation_pb2.StreamTranslateTextResponse(content_index=index, text_delta=word)
            yield translation_pb2.StreamTranslateTextResponse(content_index=index, result=translation)

    def _receive(self, request, context) -> None:
        with self._lock:
            self.requests.append(request)
            self.connections.add(context.peer())
            number = len(self.requests)
        try:
            self.on_request(number)
        except errors.DragomanError as error:
            context.abort_with_status(rpc_status.to_status(errors.to_status(error)))

    def ListModels(self, request, context):
        return translation_pb2.ListModelsResponse(models=self._models())

    def _models(self) -> list[translation_pb2.Model]:
        return [
            translation_pb2.Model(
                name=f"en-{target}", source_language_code="en", target_language_code=target, precision="int8"
            )
            for target in ("de", "fr")
        ]

    def translated(self, text: str) -> translation_pb2.TranslatedText:
        words = len(text.split())
        return translation_pb2.TranslatedText(
            translated_text=text.upper(), source_tokens=words, target_tokens=words + 1
        )


@pytest.fixture
def server() -> Iterator[Server]:
    servicer = Server()
    grpc_server = grpc.server(ThreadPoolExecutor(max_workers=1))
    translation_pb2_grpc.add_TranslationServicer_to_server(servicer, grpc_server)
    servicer.address = f"127.0.0.1:{grpc_server.add_insecure_port('127.0.0.1:0')}"
    grpc_server.start()
    yield servicer
    grpc_server.stop(grace=None).wait()
