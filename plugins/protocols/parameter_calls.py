"""Calls of other products' protocols, which may send the API key as a parameter, and their common functions."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from dragoman.errors import DragomanError, UnauthenticatedError
from dragoman.v1 import translation_pb2 as pb
from plugins.http import errors
from plugins.http.body import Body
from plugins.http.calls import DEFAULT_TIMEOUT_S, Calls
from plugins.protocols import form
from service.handlers.context import CallContext
from service.handlers.validation import OTHERS_TAKE_MORE
from service.security.connection_limits import MAX_HEAD_BYTES
from service.wire import CallProtocol

# The part of a body that is searched for a key if no header has one.
KEY_BYTES: Final = MAX_HEAD_BYTES

_T = TypeVar("_T")


class ParameterCalls:
    """Begins calls.

    Args:
        calls: begins calls of all protocols.
        protocol: the protocol of these calls.
        key_name: the parameter with the API key.
    """

    def __init__(self, calls: Calls, protocol: CallProtocol, key_name: str) -> None:
        self._calls = calls
        self.origin = calls.origin
        self._protocol = protocol
        self._key_name = key_name

    async def read(
        self,
        method: str,
        request: Request,
        make: Callable[[dict[str, Any]], _T],
        key: str = "",
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> tuple[_T, CallContext]:
        """Identify the caller, read the parameters of the call, and make the request.

        If no header has a key, only the beginning of the body is read to identify the caller.

        Args:
            method: the name of the method, such as "TranslateText".
            make: converts parameters to a request, or raises an InvalidRequestError.
            key: the key in a header of the protocol; "": none.
            timeout_s: the timeout if the headers have none.

        Raises:
            DragomanError: one of these steps failed; the call is finished and logged.
            ClientLeftError: the client has closed the connection.
        """
        body = self._calls.body(request)
        if not key and not self._calls.knows(request):
            key = await self._key(request, body)

        async def read() -> _T:
            return make(await form.parameters(request, await body.whole(), self._calls.turn))

        try:
            return await self._calls.read(method, self._protocol, request, read, key=key, timeout_s=timeout_s)
        except UnauthenticatedError as error:
            if not key:
                error.message += f"; of a body, {self._key_name} counts in the first {KEY_BYTES} bytes"
            raise

    async def _key(self, request: Request, body: Body) -> str:
        """Find the key in the URL or in the beginning of the body; "" if there is none.

        Raises:
            ClientLeftError: the client has closed the connection.
        """
        try:
            beginning = await body.beginning(KEY_BYTES)
            given = form.begun(request, beginning, is_whole=len(beginning) < KEY_BYTES)
            return form.text_of(given, self._key_name)
        except DragomanError:
            return ""


def quality_of(translated: pb.TranslatedText) -> float | None:
    """Give the quality estimate of a translation for an answer; None if it has none."""
    return translated.quality_estimate if translated.HasField("quality_estimate") else None


def answered(
    serve: Callable[[Request], Awaitable[Any]], failed: Callable[[DragomanError], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Make an endpoint that answers in JSON.

    Args:
        serve: returns the content to write as JSON, or a complete answer.
        failed: makes the answer to a failed call.
    """

    async def endpoint(request: Request) -> Response:
        try:
            content = await serve(request)
            return content if isinstance(content, Response) else errors.json_response(content)
        except DragomanError as error:
            return failed(error)

    return endpoint


def in_own_names(error: DragomanError, names: Mapping[str, str]) -> str:
    """Give the message of an error, with the caller's own name of the wrong parameter and no method of other protocols.

    Args:
        names: parameter names, by the fields of messages.
    """
    message = error.message.replace(OTHERS_TAKE_MORE, "send fewer texts a call")
    field, colon, rule = message.partition(": ")
    name, bracket, place = field.removeprefix("config.").partition("[")
    return f"{names[name]}{bracket}{place}{colon}{rule}" if name in names else message
