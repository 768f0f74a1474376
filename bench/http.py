"""What a call costs the server by the protocol that it comes by: gRPC and those of HTTP, in one run. Linux only.

    dragoman bench http --seconds 5 --rounds 3

All calls translate one sentence whose translation is kept, so the engine has no work: what is measured is the way of a
call through the server. Each client keeps its connection, and sends its next call when it has the answer to the last.
The protocols take turns, round by round; a row holds the median of its rounds. CPU time is that of the whole server.
"""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from statistics import median
from typing import Any, Final

import grpc.aio

from bench import frame
from bench.arguments import add_bundle, count, counts, positive
from bench.frame import Figures
from bench.memory import processor_s
from bench.server_process import Running, free_ports, running, serve_command
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

_TEXT: Final = "Good morning."
_TIMEOUT_S: Final = 60.0
_OWN: Final = {"contents": [_TEXT], "sourceLanguageCode": "en", "targetLanguageCode": "de"}
_HTTP: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "http": ("/v1/translate", _OWN),
    "connect": ("/dragoman.v1.Translation/TranslateText", _OWN),
    "libretranslate": ("/translate", {"q": _TEXT, "source": "en", "target": "de"}),
}

Call = Callable[[], Awaitable[None]]
Client = Callable[[], AbstractAsyncContextManager[Call]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", type=positive, default=5.0, metavar="S", help="length of each measurement (%(default)s)")
    add("--rounds", type=count, default=3, metavar="N", help="of all measurements (%(default)s)")
    add("--concurrency", type=counts, default=[1, 16], metavar="N,...", help="clients at a time (1,16)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    [port] = free_ports(1)
    command = serve_command("--models", arguments.bundle, "--http-address", f"127.0.0.1:{port}", "--log-requests=none")
    with running(command) as server:
        return {"rows": asyncio.run(_rounds(server, port, arguments))}


async def _rounds(server: Running, port: int, arguments: argparse.Namespace) -> list[Figures]:
    async with grpc.aio.insecure_channel(server.address) as channel:
        clients: dict[str, Client] = {"grpc": lambda: _grpc_client(channel)}
        clients |= {protocol: partial(_http_client, port, *_HTTP[protocol]) for protocol in _HTTP}
        kinds = [(clients_, protocol) for clients_ in arguments.concurrency for protocol in clients]
        rounds = [
            [await _one(server, clients[protocol], many, arguments.seconds) for many, protocol in kinds]
            for _ in range(arguments.rounds)
        ]
    return [
        {"protocol": protocol, "clients": many, **frame.medians(rows)}
        for (many, protocol), rows in zip(kinds, zip(*rounds, strict=True), strict=True)
    ]


async def _one(server: Running, client: Client, clients: int, seconds: float) -> dict[str, float]:
    times_s: list[float] = []
    async with AsyncExitStack() as stack:
        calls = [await stack.enter_async_context(client()) for _ in range(clients)]
        await asyncio.gather(*(call() for call in calls))  # the connection, and the translation that is kept
        busy_s, began_s = processor_s(server.process.pid), time.monotonic()
        await asyncio.gather(*(_call_on_and_on(call, began_s + seconds, times_s) for call in calls))
        took_s, busy_s = time.monotonic() - began_s, processor_s(server.process.pid) - busy_s
    return {
        "calls_per_s": len(times_s) / took_s,
        "cpu_ms": 1e3 * busy_s / len(times_s),
        "p50_ms": 1e3 * median(times_s),
    }


async def _call_on_and_on(call: Call, end_s: float, times_s: list[float]) -> None:
    while (began_s := time.monotonic()) < end_s:
        await call()
        times_s.append(time.monotonic() - began_s)


@asynccontextmanager
async def _grpc_client(channel: grpc.aio.Channel) -> AsyncIterator[Call]:
    translate = TranslationStub(channel).TranslateText
    request = pb.TranslateTextRequest(contents=[_TEXT], source_language_code="en", target_language_code="de")

    async def call() -> None:
        await translate(request, timeout=_TIMEOUT_S)

    yield call


@asynccontextmanager
async def _http_client(port: int, path: str, content: dict[str, Any]) -> AsyncIterator[Call]:
    """Connect; a client of HTTP/1.1 that does the least."""
    body = json.dumps(content)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    request = f"{head}\r\n\r\n{body}".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def call() -> None:
        writer.write(request)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not answered.startswith(b"http/1.1 200 "):
            raise ConnectionError(answered.decode(errors="replace"))
        await reader.readexactly(int(answered.partition(b"content-length:")[2].partition(b"\r\n")[0]))

    try:
        yield call
    finally:
        writer.close()
        await writer.wait_closed()
