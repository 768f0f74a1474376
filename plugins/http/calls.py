"""Calls over HTTP, in the form that handlers use: the caller, the deadline, and whether the client is connected."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.types import Receive

from dragoman.errors import DragomanError, InvalidRequestError
from plugins.http.body import Body, ClientLeftError
from plugins.http.forwarded import TrustedProxies
from plugins.http.json_messages import named
from plugins.http.request_ids import request_id_of
from service.handlers.context import CallContext
from service.handlers.translation import TranslationHandlers
from service.wire import CallProtocol

# HTTP clients usually send no deadline, and a proxy in front may have given up the call.
DEFAULT_TIMEOUT_S: Final = 300.0
TIMEOUT_HEADER: Final = "connect-timeout-ms"  # https://connectrpc.com/docs/protocol#unary-request
_TIMEOUT_DIGITS: Final = 10

_T = TypeVar("_T")


class Calls:
    """Begins calls.

    Attributes:
        turn: a lock, so that only one large body at a time is parsed as parameters.
    """

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int, proxies: TrustedProxies) -> None:
        self._handlers = handlers
        self._max_request_bytes = max_request_bytes
        self._proxies = proxies
        self.turn = asyncio.Lock()

    def knows(self, request: Request) -> bool:
        """Tell whether the headers of a call identify a caller; without API keys, all calls do."""
        return self._handlers.knows(request.headers.items())

    async def read(
        self,
        method: str,
        protocol: CallProtocol,
        request: Request,
        read: Callable[[], Awaitable[_T]],
        *,
        key: str = "",
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> tuple[_T, CallContext]:
        """Begin a call: identify the caller from the headers, and then read the request.

        Args:
            method: the name of the method, such as "TranslateText".
            read: reads the body, and returns the request that it holds.
            key: an API key from outside the headers; "": none.
            timeout_s: the timeout if the headers have none.

        Raises:
            DragomanError: identifying or reading failed; the call is finished and logged.
            ClientLeftError: the client has closed the connection.
        """
        metadata = [*request.headers.items(), *([("x-api-key", key)] if key else [])]
        request_id = request_id_of(request)
        caller = self._handlers.identify(method, self._peer(request), metadata, protocol, request_id)
        context = CallContext(caller, metadata=metadata, protocol=protocol, request_id=request_id)
        try:
            given_s = _timeout_s(request.headers.get(TIMEOUT_HEADER), timeout_s)
            return await read(), replace(context, deadline_s=context.began_s + given_s)
        except DragomanError as error:
            self._handlers.refuse(method, context, error)

    def body(self, request: Request) -> Body:
        """Give the unread body of a call."""
        return Body(request, self._max_request_bytes)

    def origin(self, request: Request) -> str:
        """Give the scheme and host that the client used, such as "https://translate.example.com"."""
        assert request.client is not None  # the connection is an internet socket
        told = request.headers.get("x-forwarded-proto", "")
        return f"{self._proxies.scheme(request.client.host, request.url.scheme, told)}://{request.url.netloc}"

    def _peer(self, request: Request) -> str:
        """Give the peer of a call in gRPC's form."""
        assert request.client is not None  # the connection is an internet socket
        host = self._proxies.client(request.client.host, request.headers.getlist("x-forwarded-for"))
        return f"ipv6:[{host}]:{request.client.port}" if ":" in host else f"ipv4:{host}:{request.client.port}"


@asynccontextmanager
async def while_client_stays(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects: an ASGI application learns of this only if it waits for it.

    Args:
        receive: from a request whose body was read.

    Raises:
        ClientLeftError: the client has closed the connection.
    """
    calling = asyncio.current_task()
    assert calling is not None
    has_left = False

    async def watch() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        calling.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not has_left:
            raise
        calling.uncancel()
        raise ClientLeftError from None
    finally:
        watching.cancel()


def _timeout_s(value: str | None, default_s: float) -> float:
    if value is None:
        return default_s
    if value.isascii() and value.isdecimal() and len(value) <= _TIMEOUT_DIGITS:
        return int(value) / 1000
    raise InvalidRequestError(
        named(TIMEOUT_HEADER, f"must be milliseconds with at most {_TIMEOUT_DIGITS} digits, is {value[:40]!r}")
    )
