"""Real gRPC servers that end by themselves, and the next one that takes the port."""

import asyncio
from collections.abc import AsyncIterator

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from dragoman.address import Address
from service.registry.health import Health
from service.rpc import accept_loop
from service.rpc.open_calls import OpenCalls
from service.rpc.port import Port
from service.rpc.standard_services import add_health
from service.telemetry.metrics import Metrics
from tests.unit.service.played_engine import until

PATIENCE_S = 60
ANY = Address("127.0.0.1", 0)


class Servers:
    """Makes servers, as long as it may."""

    def __init__(self) -> None:
        self.made: list[grpc.aio.Server] = []
        self.most = 100

    def make(self, address: Address) -> tuple[grpc.aio.Server, int]:
        if len(self.made) == self.most:
            raise RuntimeError("no more servers")
        server = accept_loop.make_server([("grpc.so_reuseport", 0)])
        add_health(Health(), server, OpenCalls(100, Metrics()))
        self.made.append(server)
        return server, server.add_insecure_port(str(address))


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def port(servers: Servers, metrics: Metrics) -> AsyncIterator[Port]:
    port = Port(servers.make, metrics)
    yield port
    await port.close(0.0)


async def answers(address: Address) -> bool:
    async with grpc.aio.insecure_channel(str(address)) as channel:
        call = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        return (await call).status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_the_port_that_was_chosen_is_told(port: Port) -> None:
    address = await port.open(ANY)
    assert address.port != 0
    assert await answers(address)
    assert not port.lost.is_set()


async def test_a_server_that_ends_is_followed_by_another_on_the_same_port(
    port: Port, servers: Servers, metrics: Metrics
) -> None:
    address = await port.open(ANY)
    with capture_logs() as log:
        await servers.made[0].stop(None)
        await until(lambda: len(servers.made) == 2 and metrics.total("listener_restarts_total") == 1)
    assert await answers(address)
    assert [line["event"] for line in log] == ["no calls were accepted any more: listening again"]
    assert not port.lost.is_set()


async def test_where_no_other_can_be_made_the_port_is_lost(port: Port, servers: Servers) -> None:
    servers.most = 1
    await port.open(ANY)
    with capture_logs() as log:
        await servers.made[0].stop(None)
        await asyncio.wait_for(port.lost.wait(), PATIENCE_S)
    assert (log[-1]["log_level"], log[-1]["reason"]) == ("critical", "no more servers")


async def test_nothing_follows_a_port_that_is_closed(port: Port, servers: Servers, metrics: Metrics) -> None:
    await port.open(ANY)
    await port.close(0.0)
    assert len(servers.made) == 1
    assert metrics.total("listener_restarts_total") == 0
    assert not port.lost.is_set()
