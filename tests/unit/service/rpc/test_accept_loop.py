"""A server whose accept loop no call ends; odd paths as bytes on the wire are in e2e/test_accept_loop.py."""

from collections.abc import AsyncIterator

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.registry.health import Health
from service.rpc.accept_loop import make_server, why_ended
from service.rpc.open_calls import OpenCalls
from service.rpc.standard_services import add_health
from service.telemetry.metrics import Metrics

PATIENCE_S = 60


@pytest.fixture
async def server() -> AsyncIterator[grpc.aio.Server]:
    server = make_server([])
    add_health(Health(), server, OpenCalls(100, Metrics()))
    yield server
    await server.stop(None)


@pytest.fixture
async def channel(server: grpc.aio.Server) -> AsyncIterator[grpc.aio.Channel]:
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel


@pytest.mark.parametrize("path", ["/x.Y/Z", "/grpc.health.v1.Health/No", "/"])
async def test_a_method_that_is_not_there_is_unimplemented_and_others_are_answered(channel, path: str) -> None:
    for _ in range(3):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary(path, bytes, bytes)(b"", timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    stub = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
    assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_server_that_runs_has_not_ended(server, channel) -> None:
    await channel.channel_ready()
    assert why_ended(server) is None


async def test_a_server_that_was_stopped_says_so(server, channel) -> None:
    await channel.channel_ready()
    await server.stop(None)
    assert why_ended(server) is not None
