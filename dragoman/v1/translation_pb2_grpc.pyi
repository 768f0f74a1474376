"""Types of the generated translation_pb2_grpc.py, by hand: the generator writes none.

A test compares the names with the service. What depends on whether the channel is of `grpc` or `grpc.aio` is Any.
"""

from collections.abc import AsyncIterator
from typing import Any

from dragoman.v1 import translation_pb2

class TranslationStub:
    TranslateText: Any
    StreamTranslateText: Any
    BatchTranslateText: Any
    ScoreText: Any
    DetectLanguage: Any
    ListModels: Any
    ListGlossaries: Any
    def __init__(self, channel: Any) -> None: ...

class TranslationServicer:
    def TranslateText(self, request: translation_pb2.TranslateTextRequest, context: Any) -> Any: ...
    def StreamTranslateText(self, request: translation_pb2.TranslateTextRequest, context: Any) -> Any: ...
    def BatchTranslateText(
        self, request_iterator: AsyncIterator[translation_pb2.BatchTranslateTextRequest], context: Any
    ) -> Any: ...
    def ScoreText(self, request: translation_pb2.ScoreTextRequest, context: Any) -> Any: ...
    def DetectLanguage(self, request: translation_pb2.DetectLanguageRequest, context: Any) -> Any: ...
    def ListModels(self, request: translation_pb2.ListModelsRequest, context: Any) -> Any: ...
    def ListGlossaries(self, request: translation_pb2.ListGlossariesRequest, context: Any) -> Any: ...

def add_TranslationServicer_to_server(servicer: TranslationServicer, server: Any) -> None: ...
