"""Answers that are interrupted, on a real gRPC server."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import grpc.aio
import pytest

from service.rpc.answers import Answers
from tests.grpc_server import grpc_server

PATIENCE_S = 30
WHY = "the server stops"
_Serve = Callable[[Any, grpc.aio.ServicerContext], Awaitable[None]]


@pytest.fixture
async def call_of() -> AsyncIterator[Callable[[_Serve], Awaitable[grpc.aio.UnaryStreamCall]]]:
    async with AsyncExitStack() as opened:

        async def start(serve: _Serve) -> grpc.aio.UnaryStreamCall:
            def add_services(server: Any) -> None:
                methods = {"m": grpc.unary_stream_rpc_method_handler(serve)}
                server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", methods),))

            address = await opened.enter_async_context(grpc_server(add_services))
            channel = await opened.enter_async_context(grpc.aio.insecure_channel(address))
            return channel.unary_stream("/s/m")(b"", timeout=PATIENCE_S)

        yield start


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("begins", [True, False])
async def test_a_status_follows_answers_that_were_interrupted_anywhere(call_of, turns, begins) -> None:
    async def serve(_: bytes, context: grpc.aio.ServicerContext) -> None:
        answers = Answers(context)
        sending = asyncio.ensure_future(answers.begin() if begins else answers.send(b"message"))
        for _ in range(turns):
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        await context.abort(grpc.StatusCode.UNAVAILABLE, WHY)

    call = await call_of(serve)
    assert await call.code() == grpc.StatusCode.UNAVAILABLE
    assert await call.details() == WHY


async def test_messages_come_in_their_order_after_headers(call_of) -> None:
    async def serve(_: bytes, context: grpc.aio.ServicerContext) -> None:
        answers = Answers(context)
        for number in range(3):
            await answers.send(b"%d" % number)

    call = await call_of(serve)
    assert [message async for message in call] == [b"0", b"1", b"2"]
    assert await call.code() == grpc.StatusCode.OK


async def test_headers_for_a_client_that_has_left_log_no_error(call_of) -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    begun, ended = asyncio.Event(), asyncio.Event()

    async def serve(_: bytes, context: grpc.aio.ServicerContext) -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(PATIENCE_S)
        sending = asyncio.ensure_future(Answers(context).begin())
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        ended.set()

    call = await call_of(serve)
    await begun.wait()
    call.cancel()
    await ended.wait()
    gc.collect()
    assert faults == []
