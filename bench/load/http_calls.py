"""Calls of a load over HTTP, by the server's own API: requests are JSON before the load, streams are events.

aiohttp takes a seventh of the processor time of httpx for a call, no more than gRPC does.
"""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from google.protobuf import json_format

from bench.load.calls import CONNECT_TIMEOUT_S, Ask, NoAnswerError, NoServerError, Reply
from bench.load.samples import Ending
from dragoman import errors, pem
from dragoman.access import Access
from dragoman.files import read_regular
from dragoman.v1 import translation_pb2

_TRANSLATE: Final = "/v1/translate"
_STREAM: Final = "/v1/translate:stream"
_JSON: Final = {"content-type": "application/json"}
_EVENT_END: Final = b"\n\n"


@asynccontextmanager
async def connected(address: str, access: Access) -> AsyncIterator["HttpCalls"]:
    """Make calls for the time of the block, over as many connections as there are calls at once, made as needed."""
    tls = _tls(access)
    async with aiohttp.ClientSession(
        f"{'http' if tls is None else 'https'}://{address}",
        connector=aiohttp.TCPConnector(limit=0, ssl=tls or True),
        headers=[*_JSON.items(), *access.metadata],
        timeout=aiohttp.ClientTimeout(CONNECT_TIMEOUT_S),
    ) as session:
        yield HttpCalls(session, address)


class HttpCalls:
    """Calls over a pool of connections; the methods are those of `bench.load.calls.Calls`."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def models(self) -> list[translation_pb2.Model]:
        try:
            async with self._session.get("/v1/models") as response:
                body = await _answered(response)
        except aiohttp.ClientResponseError as error:
            raise NoServerError(f"what answers at {self._address} does not speak HTTP/1.1") from error
        except aiohttp.ClientError as error:
            raise NoServerError(f"no server answers at {self._address}: {' '.join(str(error).split())}") from error
        try:
            return list(json_format.Parse(body, translation_pb2.ListModelsResponse()).models)
        except json_format.ParseError as error:
            raise NoServerError(f"what answers at {self._address} is not this server: {error}") from error

    def asks(self, *, stream: bool) -> list[Ask]:
        """Return the one way to send requests: each takes a connection that is free."""
        return [self._streamed if stream else self._unary]

    def encoded(self, request: bytes) -> bytes:
        message = translation_pb2.TranslateTextRequest.FromString(request)
        content: Any = json_format.MessageToDict(message)
        return json.dumps(content, ensure_ascii=False).encode()

    async def _unary(self, request: bytes, timeout_s: float) -> Reply:
        async with self._posted(_TRANSLATE, request, timeout_s) as response:
            body = await _answered(response)
        return Reply(json_format.Parse(body, translation_pb2.TranslateTextResponse()).translations)

    async def _streamed(self, request: bytes, timeout_s: float) -> Reply:
        reply = Reply()
        async with self._posted(_STREAM, request, timeout_s) as response:
            if response.status != 200:
                await _answered(response)
            async for piece in _pieces(response):
                index = piece.get("contentIndex", 0)
                if "result" in piece:
                    reply.add_result(index, json_format.ParseDict(piece["result"], translation_pb2.TranslatedText()))
                if "textDelta" in piece:
                    reply.add_text(index)
        return reply

    @asynccontextmanager
    async def _posted(self, path: str, request: bytes, timeout_s: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and tell the server its deadline."""
        headers = {"connect-timeout-ms": str(max(1, int(timeout_s * 1e3)))}
        timeout = aiohttp.ClientTimeout(timeout_s)
        try:
            async with self._session.post(path, data=request, headers=headers, timeout=timeout) as response:
                yield response
        except TimeoutError as error:
            raise NoAnswerError.of(errors.DeadlineExceededError(f"no answer within {timeout_s:g} s")) from error
        except aiohttp.ClientError as error:
            raise NoAnswerError.of(errors.ServerUnavailableError(str(error) or type(error).__name__)) from error


async def _answered(response: aiohttp.ClientResponse) -> bytes:
    body = await response.read()
    if response.status != 200:
        raise NoAnswerError(ending_of(response.status, body))
    return body


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    rest = b""
    async for part in response.content.iter_any():
        *events, rest = (rest + part).split(_EVENT_END)
        for event in events:
            kind, _, data = event.partition(b"data: ")  # a text may hold it, too
            if kind:
                raise NoAnswerError(ending_of(response.status, data))
            yield json.loads(data)


def ending_of(status: int, body: bytes) -> Ending:
    """Read why a call failed from the body of its answer, in JSON by AIP-193 where this server wrote it."""
    try:
        error = json.loads(body)["error"]
        details = (detail["reason"] for detail in error.get("details", []) if "reason" in detail)
        return Ending(error["status"], next(details, f"HTTP_{status}"), error["message"])
    except (ValueError, TypeError, KeyError, AttributeError):
        said = body[:200].decode(errors="replace")
        return Ending(errors.UnrecognizedError.code.name, f"HTTP_{status}", said)


def _tls(access: Access) -> ssl.SSLContext | None:
    """Make the context of connections; None for plain text."""
    if access.tls_ca is None:
        return None
    authorities = read_regular(access.tls_ca)
    pem.check_authorities(access.tls_ca, authorities)
    context = ssl.create_default_context(cadata=pem.text(authorities))
    if access.tls_cert is not None and access.tls_key is not None:
        pem.check_pair(access.tls_cert, access.tls_key)
        context.load_cert_chain(access.tls_cert, access.tls_key)
    return context
