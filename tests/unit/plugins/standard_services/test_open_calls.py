"""Calls of health on a real gRPC server, from one host and another."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from plugins.standard_services.open_calls import OpenCalls
from plugins.standard_services.services import add_health
from service.registry.health import Health
from service.telemetry.metrics import Metrics
from tests.grpc_server import grpc_server

LIMIT = 2
PATIENCE_S = 60
REQUEST = health_pb2.HealthCheckRequest()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def serve(metrics: Metrics) -> AsyncIterator[Callable]:
    """Starts a server whose calls are bounded; gives a channel to it."""
    async with AsyncExitStack() as opened:

        async def start() -> grpc.aio.Channel:
            bounded = grpc_server(partial(add_health, Health(), open_calls=OpenCalls(LIMIT, metrics)))
            return await opened.enter_async_context(
                grpc.aio.insecure_channel(await opened.enter_async_context(bounded))
            )

        yield start


async def watched(channel: grpc.aio.Channel, count: int) -> list:
    """Opens calls that last, and waits until each is answered."""
    calls = [health_pb2_grpc.HealthStub(channel).Watch(REQUEST, timeout=PATIENCE_S) for _ in range(count)]
    for call in calls:
        await call.read()
    return calls


async def test_a_host_has_no_more_calls_than_it_may(serve, metrics: Metrics) -> None:
    channel = await serve()
    calls = await watched(channel, LIMIT)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await health_pb2_grpc.HealthStub(channel).Check(REQUEST, timeout=PATIENCE_S)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"at most {LIMIT} calls" in refused.value.details()
    assert metrics.total("rejected_total", reason="OPEN_CALLS_LIMITED") == 1
    for call in calls:
        call.cancel()


async def test_a_call_that_ends_leaves_its_place(serve, metrics: Metrics) -> None:
    channel = await serve()
    stub = health_pb2_grpc.HealthStub(channel)
    for _ in range(3 * LIMIT):
        assert (await stub.Check(REQUEST, timeout=PATIENCE_S)).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert metrics.total("rejected_total") == 0


async def test_what_is_no_request_is_an_error_of_the_caller(serve) -> None:
    channel = await serve()
    check = channel.unary_unary("/grpc.health.v1.Health/Check", bytes, bytes)
    with pytest.raises(grpc.aio.AioRpcError) as broken:
        await check(b"\xff\xff", timeout=PATIENCE_S)
    assert broken.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    silent = channel.stream_unary("/grpc.health.v1.Health/Check", bytes, bytes)
    with pytest.raises(grpc.aio.AioRpcError) as empty:
        await silent(iter(()), timeout=PATIENCE_S)
    assert (empty.value.code(), empty.value.details()) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "the call ended without a message",
    )
