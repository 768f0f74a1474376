"""The methods with one request and one answer, for all protocols that use JSON."""

from functools import partial
from typing import Any, Final

from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from dragoman.errors import InvalidRequestError
from plugins.http import json_messages, urlencoded
from plugins.http.calls import Calls, while_client_stays
from plugins.http.request_ids import rename
from service.handlers.context import CallContext
from service.handlers.methods import Method
from service.handlers.translation import TranslationHandlers
from service.wire import CallProtocol

JSON: Final = "application/json"


class Methods:
    """Answers requests in JSON."""

    def __init__(self, handlers: TranslationHandlers, calls: Calls) -> None:
        self._handlers = handlers
        self._calls = calls

    async def answer(self, method: Method, protocol: CallProtocol, request: Request) -> Response:
        """Answer one request.

        Raises:
            ClientLeftError: the client has closed the connection.
        """
        message, context = await self.request(method, protocol, request)
        async with while_client_stays(request.receive):
            answer = await method.handle(self._handlers, message, context)
            body = await json_messages.written(answer)
        return Response(body, media_type=JSON)

    async def request(self, method: Method, protocol: CallProtocol, request: Request) -> tuple[Any, CallContext]:
        """Identify the caller, then read and parse the request of a call.

        Raises:
            DragomanError: the request is invalid; the call is finished and logged.
            ClientLeftError: the client has closed the connection.
        """
        message, context = await self._calls.read(
            method.name, protocol, request, partial(self._message, method, request)
        )
        rename(request, getattr(message, "request_id", ""))
        return message, context

    async def _message(self, method: Method, request: Request) -> Message:
        if request.method in ("GET", "HEAD"):
            fields = urlencoded.read(request.scope["query_string"], json_messages.MAX_VALUES)
            return json_messages.from_content(json_messages.unique(fields), method.request)
        kind = kind_of(request)
        if kind != JSON:
            raise InvalidRequestError(json_messages.named("content-type", f"must be {JSON}, is {kind[:100]!r}"))
        return await json_messages.parse(await self._calls.body(request).whole(), method.request)


def kind_of(request: Request) -> str:
    """Give the media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
