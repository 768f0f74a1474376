"""This server's own API: dragoman.v1.Translation as JSON under /v1, and the health of the server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from plugins.http import errors
from plugins.http.body import ClientLeftError
from plugins.http.calls import while_client_stays
from plugins.http.methods import JSON, Methods
from plugins.scoring.method import SCORE
from plugins.terms.method import LIST_GLOSSARIES
from service.handlers import methods
from service.handlers.delivery import deliver
from service.handlers.methods import Method
from service.handlers.translation import TranslationHandlers
from service.wire import CallProtocol

HEALTH: Final = "/health"
_OPENAPI: Final = Path(__file__).with_name("openapi.json")  # written by `make docs` from the contract
_EVENTS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


def routes(handlers: TranslationHandlers, answers: Methods, is_serving: Callable[[], bool]) -> list[BaseRoute]:
    """Make the routes."""

    def route(path: str, method: Method, verb: str) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                return await answers.answer(method, CallProtocol.HTTP, request)
            except DragomanError as error:
                return errors.answer(error)

        return Route(path, endpoint, methods=[verb])

    async def health(_: Request) -> Response:
        serving = is_serving()
        return errors.json_response({"status": "ok" if serving else "unavailable"}, 200 if serving else 503)

    document = _OPENAPI.read_bytes()

    async def description(_: Request) -> Response:
        return Response(document, media_type=JSON)

    return [
        route("/v1/translate", methods.TRANSLATE, "POST"),
        Route("/v1/translate:stream", _Stream(handlers, answers), methods=["POST"]),
        route("/v1/score", SCORE, "POST"),
        route("/v1/detect", methods.DETECT, "POST"),
        route("/v1/models", methods.LIST_MODELS, "GET"),
        route("/v1/glossaries", LIST_GLOSSARIES, "GET"),
        Route("/v1/openapi.json", description),
        Route(HEALTH, health),
    ]


class _Stream:
    """POST /v1/translate:stream, an ASGI application: each message is sent as an event when the client can take it."""

    def __init__(self, handlers: TranslationHandlers, answers: Methods) -> None:
        self._handlers = handlers
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; an error before the first event is the answer itself, later it is an event."""
        request = Request(scope, receive)
        events = _Events(send)
        try:
            message, context = await self._answers.request(methods.STREAM, CallProtocol.HTTP, request)
            async with while_client_stays(receive):
                await deliver(self._handlers.stream(message, context), events.send)
        except ClientLeftError:
            return
        except DragomanError as error:
            if not events.begun:
                await errors.answer(error)(scope, receive, send)
                return
            await events.write(f"event: error\ndata: {json.dumps(errors.json_of(error))}\n\n")
        await events.end()


class _Events:
    """Server-sent events, https://html.spec.whatwg.org/multipage/server-sent-events.html.

    Attributes:
        begun: whether an event was sent.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: pb.StreamTranslateTextResponse) -> None:
        """Send a message when the client can take it."""
        content: Any = json_format.MessageToDict(message)
        await self.write(f"data: {json.dumps(content, ensure_ascii=False)}\n\n")

    async def write(self, event: str) -> None:
        """Send the text of an event."""
        if not self.begun:
            self.begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
        await self._send({"type": "http.response.body", "body": event.encode(), "more_body": True})

    async def end(self) -> None:
        """End the stream of events."""
        await self._send({"type": "http.response.body", "body": b""})
