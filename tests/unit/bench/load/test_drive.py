"""A load on the server of these tests, and what runs beside it."""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bench.load import grpc_calls
from bench.load.calls import NoServerError
from bench.load.drive import drive, put
from bench.load.generator import Generator
from bench.load.grpc_calls import connected
from bench.load.loops import ClosedLoop
from bench.load.samples import Samples
from dragoman.v1 import translation_pb2

REQUESTS = [translation_pb2.TranslateTextRequest(contents=[text]).SerializeToString() for text in ("One.", "Two.")]
PATIENCE_S = 60.0


def closed(requests: int) -> ClosedLoop:
    return ClosedLoop(2, 0.0, math.inf, requests)


def watching(seen: list[str], ended: list[str]) -> Callable[[Generator], Awaitable[None]]:
    async def watch(generator: Generator) -> None:
        seen.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(f"{generator.sent} sent")

    return watch


def test_a_load_gives_what_was_seen_of_every_request(server: Any) -> None:
    samples = put(server.address, REQUESTS, closed(6), timeout_s=PATIENCE_S)
    assert (samples.completed, samples.unanswered, samples.warmup_requests) == (6, 0, 0)
    assert sorted(request.contents[0] for request in server.requests) == ["One."] * 3 + ["Two."] * 3


def test_what_watches_ends_with_the_load(server: Any) -> None:
    seen: list[str] = []
    ended: list[str] = []
    put(server.address, REQUESTS, closed(4), timeout_s=PATIENCE_S, watches=[watching(seen, ended)] * 2)
    assert seen == ["began"] * 2
    assert ended == ["4 sent"] * 2


async def test_a_load_that_is_cancelled_ends_what_watches(server: Any) -> None:
    asked, over = threading.Event(), threading.Event()

    def stall(number: int) -> None:
        asked.set()
        over.wait(PATIENCE_S)

    server.on_request = stall
    seen: list[str] = []
    ended: list[str] = []
    async with connected(server.address, 1) as calls:
        generator = Generator(calls.asks(stream=False), REQUESTS, PATIENCE_S, Samples())
        load = asyncio.create_task(drive(generator, closed(2), [watching(seen, ended)]))
        try:
            assert await asyncio.to_thread(asked.wait, PATIENCE_S)
            load.cancel()
            with pytest.raises(asyncio.CancelledError):
                await load
        finally:
            over.set()
        async with asyncio.timeout(PATIENCE_S):
            while not ended:
                await asyncio.sleep(0)
    assert (seen, ended) == (["began"], ["2 sent"])


def test_nobody_at_the_address_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_calls, "CONNECT_TIMEOUT_S", 0.2)
    # A ConnectionError, which every command tells in one line.
    assert issubclass(NoServerError, ConnectionError)
    with pytest.raises(NoServerError, match=r"^no server answers at 127\.0\.0\.1:1$"):
        put("127.0.0.1:1", REQUESTS, closed(1), timeout_s=1.0)


async def test_each_channel_has_a_connection_of_its_own(server: Any) -> None:
    async with connected(server.address, 3) as calls:
        generator = Generator(calls.asks(stream=False), REQUESTS, PATIENCE_S, Samples())
        await drive(generator, closed(6))
    assert len(server.connections) == 3
