"""Connections of real clients to a real gRPC server, ended before it stops."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from plugins.sockets import own_sockets
from plugins.sockets.ending import end_connections
from tests.grpc_server import grpc_server
from tests.unit.service.played_engine import until

PATIENCE_S = 60.0
METHOD = "/test.Slow/Answer"


class Slow:
    """Answers each call with its request, once it may."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_answer = asyncio.Event()

    async def _answer(self, request: bytes, context: Any) -> bytes:
        self.begun += 1
        await self.may_answer.wait()
        return request

    def add_to(self, server: Any) -> None:
        methods = {"Answer": grpc.unary_unary_rpc_method_handler(self._answer)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Slow", methods),))


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def port(slow: Slow) -> AsyncIterator[int]:
    async with grpc_server(slow.add_to) as address:
        yield int(address.rpartition(":")[2])


@pytest.fixture
async def channel(port: int) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel


def call(channel: grpc.aio.Channel) -> Any:
    return channel.unary_unary(METHOD)(b"x", timeout=PATIENCE_S)


async def test_answers_are_sent_first(port: int, slow: Slow, channel: grpc.aio.Channel) -> None:
    calls = [call(channel) for _ in range(5)]
    await until(lambda: slow.begun == 5)
    ending = asyncio.create_task(end_connections(port, PATIENCE_S))
    await asyncio.sleep(0.05)
    assert len(own_sockets.connections(port)) == 1
    slow.may_answer.set()
    assert await asyncio.gather(*calls) == [b"x"] * 5
    await ending
    assert own_sockets.connections(port) == {}


async def test_a_call_that_takes_too_long_is_told_that_the_server_is_unavailable(port, slow: Slow, channel) -> None:
    late = call(channel)
    await until(lambda: slow.begun)
    await end_connections(port, 0.05)
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await late
    assert told.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_no_connection_begins_any_more(port: int, slow: Slow, channel: grpc.aio.Channel) -> None:
    await end_connections(port, PATIENCE_S)
    with socket.socket() as late:
        late.settimeout(0.3)
        with pytest.raises(TimeoutError):
            late.connect(("127.0.0.1", port))


async def test_other_ports_are_left_alone(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        with socket.create_connection(other.getsockname()) as caller, other.accept()[0] as accepted:
            await end_connections(port, PATIENCE_S)
            caller.sendall(b"x")
            assert accepted.recv(1) == b"x"
        with socket.create_connection(other.getsockname(), PATIENCE_S):
            pass


async def test_without_linux_nothing_is_ended(port: int, slow: Slow, channel, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(own_sockets, "DESCRIPTORS", tmp_path / "none")
    slow.may_answer.set()
    await call(channel)
    await end_connections(port, PATIENCE_S)
    assert await call(channel) == b"x"
