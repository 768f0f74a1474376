"""What one connection takes for a request, and how it answers."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dragoman.address import Address
from plugins.http.connections import Connections
from plugins.http.forwarded import TrustedProxies
from service.settings import Settings
from service.telemetry.metrics import Metrics

PATIENCE_S = 60.0
HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
TRAILERS = b"x-forwarded-for: 192.0.2.1\r\nauthorization: Bearer a\r\ncontent-encoding: gzip\r\nx-request-id: a\r\n"


async def show(request: Request) -> Response:
    """Answers with the size of the body, and with the headers as they are after it."""
    size = len(await request.body())
    return JSONResponse({"size": size, "headers": [name.decode() for name, _ in request.scope["headers"]]})


async def stream(_: Request) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    return StreamingResponse(parts())


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    app = Starlette(routes=[Route("/", show, methods=["POST"]), Route("/stream", stream)])
    connections = Connections(app, Settings(), None, TrustedProxies([]), Metrics())
    yield connections.open(Address("127.0.0.1", 0))
    await connections.close(PATIENCE_S)


async def exchange(address: Address, *parts: bytes) -> tuple[bytes, bytes]:
    """Sends a request, with a pause after each part, and gives the head and body of what was said until the end."""
    reader, writer = await asyncio.open_connection(*address)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.01)
    async with asyncio.timeout(PATIENCE_S):
        said = await reader.read()
    writer.close()
    head, _, body = said.partition(b"\r\n\r\n")
    return head, body


async def test_trailers_are_no_headers(address: Address) -> None:
    head, body = await exchange(address, CHUNKED + b"5\r\nhello\r\n", b"0\r\n" + TRAILERS + b"\r\n")
    assert b" 200 OK" in head
    assert json.loads(body) == {"size": 5, "headers": ["host", "connection", "transfer-encoding"]}


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD, b"x: " + b"a" * 9_000, b"a" * 9_000],
        [CHUNKED + b"0\r\n", b"x: a\r\n" * 1_500, b"x: a\r\n" * 1_500],
        [CHUNKED + b"0\r\nx: ", b"a" * 9_000, b"a" * 9_000],
        [CHUNKED + b"2000\r\n" + b"a" * 0x2000 + b"\r\n0\r\n", b"x: a\r\n" * 1_500, b"x: a\r\n" * 1_500],
        [CHUNKED + b"1;", b"a" * 9_000, b"a" * 9_000],
        [CHUNKED, b"1\r\n \r\n" * 5_000],
    ],
    ids=["headers", "trailers", "a trailer", "trailers after a body", "an extension of a chunk", "one-byte chunks"],
)
async def test_what_is_no_body_has_a_limit(address: Address, parts: list[bytes]) -> None:
    head, body = await exchange(address, *parts)
    assert b" 431 " in head
    assert "must be at most 16384 bytes" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("size", [5, 1_000, 100_000])
async def test_a_body_of_chunks_has_none(address: Address, size: int) -> None:
    chunks = (b"%x\r\n" % size + b"a" * size + b"\r\n") * (500_000 // size)
    head, body = await exchange(address, CHUNKED, chunks[:250_001], chunks[250_001:] + b"0\r\n\r\n")
    assert b" 200 OK" in head
    assert json.loads(body)["size"] == 500_000


async def test_many_requests_over_one_connection_have_none_together(address: Address) -> None:
    request = b"POST / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 6_000 + b"\r\ncontent-length: 0\r\n\r\n"
    head, body = await exchange(address, *[request] * 4, HEAD + b"content-length: 0\r\n\r\n")
    assert (head + body).count(b" 200 OK") == 5


@pytest.mark.parametrize(("path", "body"), [(b"/stream", b"one two"), (b"/other", b"Not Found")])
async def test_a_client_of_http_1_0_gets_no_chunks(address: Address, path: bytes, body: bytes) -> None:
    head, said = await exchange(address, b"GET %s HTTP/1.0\r\n\r\n" % path)
    assert said == body
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head


async def test_a_client_of_http_1_1_gets_chunks(address: Address) -> None:
    head, said = await exchange(address, b"GET /stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert said == b"4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"
