"""The methods that are one request and one answer, for every protocol that has them in JSON."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from dragoman.errors import InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from service.handlers.context import CallContext
from service.handlers.translation import TranslationHandlers
from service.http import json_messages
from service.http.calls import Calls, while_client_stays
from service.http.request_ids import rename
from service.wire import Protocol

JSON: Final = "application/json"


class Method(NamedTuple):
    """One method of dragoman.v1.Translation.

    Attributes:
        name: as the contract has it.
        request: the class of its message.
        answer: that of its answer.
    """

    name: str
    request: type[Message]
    answer: type[Message]


TRANSLATE: Final = Method("TranslateText", pb.TranslateTextRequest, pb.TranslateTextResponse)
STREAM: Final = Method("StreamTranslateText", pb.TranslateTextRequest, pb.StreamTranslateTextResponse)
SCORE: Final = Method("ScoreText", pb.ScoreTextRequest, pb.ScoreTextResponse)
DETECT: Final = Method("DetectLanguage", pb.DetectLanguageRequest, pb.DetectLanguageResponse)
LIST_MODELS: Final = Method("ListModels", pb.ListModelsRequest, pb.ListModelsResponse)
LIST_GLOSSARIES: Final = Method("ListGlossaries", pb.ListGlossariesRequest, pb.ListGlossariesResponse)

UNARY: Final = (TRANSLATE, SCORE, DETECT, LIST_MODELS, LIST_GLOSSARIES)

_Handler = Callable[[Any, CallContext], Awaitable[Message]]


class Methods:
    """Answers requests in JSON.

    Args:
        handlers: of the methods.
        calls: begins them.
    """

    def __init__(self, handlers: TranslationHandlers, calls: Calls) -> None:
        self._calls = calls
        self._handlers: dict[str, _Handler] = {
            TRANSLATE.name: handlers.translate,
            SCORE.name: handlers.score,
            DETECT.name: handlers.detect,
            LIST_MODELS.name: handlers.list_models,
            LIST_GLOSSARIES.name: handlers.list_glossaries,
        }

    async def answer(self, method: Method, protocol: Protocol, request: Request) -> Response:
        """Answer one request.

        Raises:
            DragomanError: why there is no answer.
            ClientLeftError: there is nobody to answer.
        """
        message, context = await self.request(method, protocol, request)
        async with while_client_stays(request.receive):
            answer = await self._handlers[method.name](message, context)
            body = await json_messages.written(answer)
        return Response(body, media_type=JSON)

    async def request(self, method: Method, protocol: Protocol, request: Request) -> tuple[Any, CallContext]:
        """Identify the caller, then read and parse the request of a call.

        Raises:
            DragomanError: it is none; the call is over, and written down.
            ClientLeftError: the client has gone.
        """
        message, context = await self._calls.read(
            method.name, protocol, request, partial(self._message, method, request)
        )
        rename(request, getattr(message, "request_id", ""))
        return message, context

    async def _message(self, method: Method, request: Request) -> Message:
        if request.method == "GET":
            return json_messages.from_content(dict(request.query_params), method.request)
        kind = kind_of(request)
        if kind != JSON:
            raise InvalidRequestError(json_messages.named("content-type", f"must be {JSON}, is {kind[:100]!r}"))
        return await json_messages.parse(await self._calls.body(request).whole(), method.request)


def kind_of(request: Request) -> str:
    """Give the type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
