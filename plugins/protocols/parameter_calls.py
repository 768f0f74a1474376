"""Calls of other servers' protocols, whose parameters may hold the key, and what these protocols have in common."""

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
from service.wire import Protocol

# Of a body, in which a key is looked for where no header has one: as much as headers may have.
KEY_BYTES: Final = 16_384

_T = TypeVar("_T")


class ParameterCalls:
    """Begins calls.

    Args:
        calls: of all protocols.
        protocol: by which they come.
        key_name: the parameter that is the key.
    """

    def __init__(self, calls: Calls, protocol: Protocol, key_name: str) -> None:
        self._calls = calls
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
        """Tell who calls, read the parameters of the call, and make of them what is asked for.

        Where no header tells, the beginning of the body has to, and no more is read of it before.

        Args:
            method: its name, such as "TranslateText".
            request: of the call.
            make: makes a request of parameters, or raises an InvalidRequestError.
            key: that came in a header of the protocol; "": none did.
            timeout_s: of a call whose headers ask for none.

        Raises:
            DragomanError: one of these fails; the call is over, and written down.
            ClientLeftError: the client has gone.
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

    def origin(self, request: Request) -> str:
        """Give the scheme and the host that a client calls."""
        return self._calls.origin(request)

    async def _key(self, request: Request, body: Body) -> str:
        """Find the key among the parameters of the URL and of the beginning of the body; "" where there is none.

        Raises:
            ClientLeftError: the client has gone.
        """
        try:
            beginning = await body.beginning(KEY_BYTES)
            given = form.begun(request, beginning, is_whole=len(beginning) < KEY_BYTES)
            return form.text_of(given, self._key_name)
        except DragomanError:
            return ""


def quality_of(translated: pb.TranslatedText) -> float | None:
    """Give the quality estimate of a translation, for an answer that is to tell it; None: it has none."""
    return translated.quality_estimate if translated.HasField("quality_estimate") else None


def answered(
    serve: Callable[[Request], Awaitable[Any]], failed: Callable[[DragomanError], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Make an endpoint that answers in JSON.

    Args:
        serve: gives what is written, or an answer of its own.
        failed: makes the answer to a call that failed.
    """

    async def endpoint(request: Request) -> Response:
        try:
            content = await serve(request)
            return content if isinstance(content, Response) else errors.json_response(content)
        except DragomanError as error:
            return failed(error)

    return endpoint


def in_own_names(error: DragomanError, names: Mapping[str, str]) -> str:
    """Give the message of an error, where the parameter that is wrong has the name that its caller knows.

    Args:
        names: of parameters, by those of the fields of messages.
    """
    field, colon, rule = error.message.partition(": ")
    name, bracket, place = field.removeprefix("config.").partition("[")
    return f"{names[name]}{bracket}{place}{colon}{rule}" if name in names else error.message
