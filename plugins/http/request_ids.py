"""The id of each HTTP request: sent by the client or made up here, and a header of every answer."""

import secrets
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.handlers.validation import is_request_id

HEADER: Final = "x-request-id"


class RequestIds:
    """An ASGI application that gives each request an id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        asked = Headers(scope=scope).get(HEADER, "")
        state = scope.setdefault("state", {})
        state["request_id"] = asked if is_request_id(asked) else secrets.token_hex(16)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                header = (HEADER.encode(), state["request_id"].encode())
                message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        await self._app(scope, receive, send_named)


def request_id_of(request: Request) -> str:
    """Give the id of a request."""
    request_id: str = request.state.request_id
    return request_id


def rename(request: Request, request_id: str) -> None:
    """Use the id from the body of a request, if it is valid."""
    if is_request_id(request_id):
        request.state.request_id = request_id
