"""google.cloud.translation.v3.TranslationService on gRPC, for programs that have Google's client.

Its calls are counted as calls of dragoman.v1.Translation: GetSupportedLanguages as ListModels.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import grpc.aio
from google.protobuf.descriptor import FileDescriptor

from dragoman.errors import DragomanError, InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from plugins.google import messages
from plugins.google.v3 import translation_service_pb2 as google
from service.handlers.answer import whole
from service.handlers.context import CallContext
from service.handlers.translation import TranslationHandlers
from service.rpc.methods import Methods
from service.settings import Settings
from service.wire import SERVICE, CallProtocol

_Asked = TypeVar("_Asked")

_STORAGE: Final = f"it works on files in a cloud; {SERVICE}/BatchTranslateText takes any number of texts"
_FILES: Final = f"its glossaries are files; {SERVICE}/ListGlossaries lists them"
# Unsupported methods, and why. gRPC answers to any other method that it is not found.
_NOT_HERE: Final = {
    "AdaptiveMtTranslate": "its models adapt to no examples",
    "BatchTranslateDocument": _STORAGE,
    "BatchTranslateText": _STORAGE,
    "CreateGlossary": _FILES,
    "DeleteGlossary": _FILES,
    "GetGlossary": _FILES,
    "ListGlossaries": _FILES,
    "RomanizeText": "it has no models of scripts",
    "TranslateDocument": "it translates text only",
    "UpdateGlossary": _FILES,
}


class GoogleTranslation:
    """The service for servers of `grpc.aio`."""

    name: str = "google.cloud.translation.v3.TranslationService"
    file: FileDescriptor = google.DESCRIPTOR

    def __init__(self, handlers: TranslationHandlers, settings: Settings) -> None:
        self._handlers = handlers
        self._settings = settings
        self._methods = Methods(handlers, settings.max_request_bytes, CallProtocol.GOOGLE)

    def add_to(self, server: Any) -> None:
        """Add the service to a server that has not started."""
        make = self._methods.make
        methods = {
            "TranslateText": make(
                "TranslateText", self._translate, google.TranslateTextRequest, google.TranslateTextResponse
            ),
            "DetectLanguage": make(
                "DetectLanguage", self._detect, google.DetectLanguageRequest, google.DetectLanguageResponse
            ),
            "GetSupportedLanguages": make(
                "ListModels", self._list_languages, google.GetSupportedLanguagesRequest, google.SupportedLanguages
            ),
        }
        methods |= {name: _not_here(reason) for name, reason in _NOT_HERE.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self.name, methods),))

    async def _translate(self, request: Any, call: CallContext) -> google.TranslateTextResponse:
        read = partial(messages.translation_asked, settings=self._settings)
        asked = self._asked("TranslateText", read, request, call)
        try:
            answer = await self._handlers.translate(asked, call, or_return=True)
        except InvalidRequestError as error:
            raise messages.in_own_names(error) from None
        try:
            return whole(messages.translated(request, asked, answer), self._settings.max_answer_bytes)
        except DragomanError as error:
            error.request_id = answer.request_id  # the id in the log
            raise

    async def _detect(self, request: Any, call: CallContext) -> google.DetectLanguageResponse:
        asked = self._asked("DetectLanguage", messages.detection_asked, request, call)
        return messages.detected(await self._handlers.detect(asked, call))

    async def _list_languages(self, request: Any, call: CallContext) -> google.SupportedLanguages:
        asked = self._asked("ListModels", self._languages_asked, request, call)
        return messages.languages(request, await self._handlers.list_models(asked, call))

    def _languages_asked(self, request: Any) -> pb.ListModelsRequest:
        asked = messages.languages_asked(request)
        if name := messages.model_of(request.model):
            self._handlers.gate.catalog().named(name)
        return asked

    def _asked(self, method: str, read: Callable[[Any], _Asked], request: Any, call: CallContext) -> _Asked:
        """Convert a request of Google's API to one of this server.

        Args:
            read: makes the request, or raises an InvalidRequestError.

        Raises:
            DragomanError: `read` failed; the call is finished and logged.
        """
        try:
            return read(request)
        except DragomanError as error:
            self._handlers.refuse(method, call, error)


def _not_here(reason: str) -> Any:
    """Make a method that answers UNIMPLEMENTED; it reads no message."""

    async def refuse(_: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"not on this server: {reason}")

    return grpc.stream_stream_rpc_method_handler(refuse)
