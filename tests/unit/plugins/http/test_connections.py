"""Connections of real clients to the HTTP port, and their end."""

import asyncio
import http.client
import os
import resource
import socket

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from dragoman.address import Address
from plugins.http.connections import Connections
from plugins.http.forwarded import TrustedProxies
from plugins.sockets import own_sockets
from service.settings import Settings
from service.telemetry.metrics import Metrics
from tests.unit.service.played_engine import until

PATIENCE_S = 60.0


async def answer(request: Request) -> Response:
    return PlainTextResponse("here")


@pytest.fixture
def connections() -> Connections:
    app = Starlette(routes=[Route("/", answer)])
    return Connections(app, Settings(max_connections=100), None, TrustedProxies([]), Metrics())


@pytest.fixture
async def address(connections: Connections) -> Address:
    return connections.open(Address("127.0.0.1", 0))


def connect(address: Address) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=PATIENCE_S)
    connection.connect()
    return connection


def get(connection: http.client.HTTPConnection) -> tuple[bytes, str | None]:
    connection.request("GET", "/")
    given = connection.getresponse()
    return given.read(), given.getheader("connection")


async def test_the_end_is_said_with_the_last_answer(connections: Connections, address: Address) -> None:
    caller = connect(address)
    assert await asyncio.to_thread(get, caller) == (b"here", None)
    leaving = asyncio.create_task(connections.close(PATIENCE_S))
    await asyncio.sleep(0.05)  # it is told though the server has begun to leave
    assert await asyncio.to_thread(get, caller) == (b"here", "close")
    await leaving


async def test_connections_that_were_not_accepted_yet_are_answered(connections: Connections, address: Address) -> None:
    callers = [connect(address) for _ in range(20)]  # the event loop had no time for them
    leaving = asyncio.create_task(connections.close(PATIENCE_S))
    assert await asyncio.gather(*(asyncio.to_thread(get, caller) for caller in callers)) == [(b"here", "close")] * 20
    await leaving
    with pytest.raises(ConnectionRefusedError):
        connect(address)


async def test_a_flood_of_connections_does_not_hold_the_event_loop(connections, address: Address, monkeypatch) -> None:
    monkeypatch.setattr("plugins.http.connections._BACKLOG", 3)
    callers = [connect(address) for _ in range(10)]
    while connections.count == 0:
        await asyncio.sleep(0)
    assert connections.count <= 3
    assert await asyncio.gather(*(asyncio.to_thread(get, caller) for caller in callers)) == [(b"here", None)] * 10
    for caller in callers:
        caller.close()
    await connections.close(PATIENCE_S)


async def test_connections_without_a_call_are_ended(connections: Connections, address: Address) -> None:
    caller = connect(address)
    await connections.close(PATIENCE_S)
    assert caller.sock.recv(1) == b""
    caller.close()


def shut_listening(address: Address) -> None:
    """Shuts the socket of this process that listens on an address."""
    for descriptor in own_sockets.by_inode(os.listdir("/proc/self/fd")).values():
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.getsockname() == tuple(address):
                copy.shutdown(socket.SHUT_RDWR)


async def test_what_does_not_listen_any_more_is_lost(connections: Connections, address: Address) -> None:
    with capture_logs() as log:
        shut_listening(address)
        await asyncio.wait_for(connections.lost.wait(), PATIENCE_S)
    assert [line["event"] for line in log] == ["no HTTP connections are accepted any more"]
    await connections.close(PATIENCE_S)


async def test_without_a_descriptor_connections_wait_and_nothing_is_held_up(connections, address: Address) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    caller = connect(address)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), hard))
    try:
        for _ in range(20):
            await asyncio.sleep(0.01)  # the event loop goes on
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert await asyncio.to_thread(get, caller) == (b"here", None)
    assert not connections.lost.is_set()
    caller.close()
    await connections.close(PATIENCE_S)


@pytest.mark.parametrize("steps", range(5))
async def test_no_connection_is_counted_after_its_end(connections: Connections, address: Address, steps: int) -> None:
    callers = [connect(address) for _ in range(5)]
    for _ in range(steps):  # the connections are being begun when the server leaves
        await asyncio.sleep(0)
    await connections.close(0.0)
    await until(lambda: connections.count == 0)
    for caller in callers:
        caller.close()
