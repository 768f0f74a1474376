"""Health on a real gRPC server: asked for and watched."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

import grpc.aio
import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc

from plugins.standard_services.open_calls import OpenCalls
from plugins.standard_services.services import add_health, pool_of
from service.registry.health import BUNDLES, Health, name_of
from service.telemetry.metrics import Metrics
from service.wire import SERVICE
from tests.grpc_server import grpc_server

PATIENCE_S = 120
SERVING, NOT_SERVING, UNKNOWN = "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"
EN_DE, DE_EN = "dragoman.v1.Translation/en-de", "dragoman.v1.Translation/de-en"


class Served(NamedTuple):
    """A server and its health."""

    health: Health
    stub: health_pb2_grpc.HealthStub
    channel: grpc.aio.Channel

    async def check(self, name: str) -> str:
        answer = await self.stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE_S)
        return status(answer)

    async def all(self) -> list[str]:
        return [await self.check(name) for name in ("", SERVICE, EN_DE, DE_EN)]

    async def list(self) -> dict[str, str]:
        """Asks as a client of today does, whose stubs know the method."""
        answer = GetMessageClass(pool_of(()).FindMessageTypeByName("grpc.health.v1.HealthListResponse"))
        ask = self.channel.unary_unary("/grpc.health.v1.Health/List", bytes, answer.FromString)
        return {name: status(each) for name, each in (await ask(b"", timeout=PATIENCE_S)).statuses.items()}

    def watch(self, name: str):
        return self.stub.Watch(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE_S)


def status(answer: health_pb2.HealthCheckResponse) -> str:
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    health = Health()
    async with (
        grpc_server(partial(add_health, health, open_calls=OpenCalls(100, Metrics()))) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield Served(health, health_pb2_grpc.HealthStub(channel), channel)


def test_the_name_of_a_model() -> None:
    assert name_of("en-de") == EN_DE


async def test_nothing_serves_at_first_and_what_was_never_heard_of_is_not_found(served: Served) -> None:
    assert [await served.check(name) for name in ("", SERVICE)] == [NOT_SERVING] * 2
    for name in (EN_DE, "x"):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.check(name)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_model_that_could_not_be_loaded_does_not_hurt_the_others(served: Served) -> None:
    served.health.serve(["en-de"])
    served.health.miss("de-en")
    assert await served.all() == [SERVING, SERVING, SERVING, NOT_SERVING]
    served.health.serve(["en-de", "de-en"])
    assert await served.all() == [SERVING] * 4


async def test_a_served_model_whose_newer_version_is_refused_goes_on_serving(served: Served) -> None:
    served.health.serve(["en-de", "de-en"])
    served.health.miss("en-de")
    assert await served.all() == [SERVING] * 4


async def test_what_disagrees_with_the_disk_shows_under_a_name_of_its_own_and_nowhere_else(
    served: Served,
) -> None:
    assert await served.check(BUNDLES) == NOT_SERVING  # nothing is served yet
    served.health.serve(["en-de", "de-en"])
    assert await served.check(BUNDLES) == SERVING
    served.health.agree(agree=False)
    assert [*await served.all(), await served.check(BUNDLES)] == [SERVING] * 4 + [NOT_SERVING]
    served.health.agree(agree=True)
    assert await served.check(BUNDLES) == SERVING
    served.health.leave()
    assert await served.check(BUNDLES) == NOT_SERVING


async def test_the_list_has_what_check_knows(served: Served) -> None:
    served.health.serve(["en-de", "de-en"])
    served.health.stall(["de-en"])
    assert await served.list() == {
        "": NOT_SERVING,
        SERVICE: NOT_SERVING,
        EN_DE: SERVING,
        DE_EN: NOT_SERVING,
        BUNDLES: SERVING,
    }


async def test_a_model_that_was_removed_does_not_serve(served: Served) -> None:
    served.health.serve(["en-de", "de-en"])
    served.health.serve(["en-de"])
    assert await served.all() == [SERVING, SERVING, SERVING, NOT_SERVING]


async def test_a_stall_is_that_of_the_server_and_of_its_model(served: Served) -> None:
    served.health.serve(["en-de", "de-en"])
    served.health.stall(["de-en"])
    assert await served.all() == [NOT_SERVING, NOT_SERVING, SERVING, NOT_SERVING]
    served.health.stall([])
    assert await served.all() == [SERVING] * 4


async def test_nothing_serves_again_after_leaving(served: Served) -> None:
    served.health.serve(["en-de"])
    served.health.leave()
    served.health.serve(["en-de", "de-en"])
    served.health.stall([])
    assert await served.all() == [NOT_SERVING] * 4


async def test_a_watcher_is_told_of_changes_only(served: Served) -> None:
    async with asyncio.timeout(PATIENCE_S):
        watch = served.watch(EN_DE)
        assert status(await watch.read()) == UNKNOWN
        served.health.serve(["de-en"])
        served.health.serve(["en-de", "de-en"])
        assert status(await watch.read()) == SERVING
        served.health.serve(["en-de"])
        served.health.miss("x")
        served.health.leave()
        assert status(await watch.read()) == NOT_SERVING
        watch.cancel()


async def test_one_watcher_that_leaves_does_not_hurt_the_others(served: Served) -> None:
    """With the servicer of grpcio-health-checking the second one hears nothing any more."""
    async with asyncio.timeout(PATIENCE_S):
        served.health.serve(["en-de"])
        first, second = served.watch(""), served.watch("")
        assert [status(await watch.read()) for watch in (first, second)] == [SERVING] * 2
        first.cancel()
        while not first.done():
            await asyncio.sleep(0)
        assert await served.check("") == SERVING  # and the server has heard of the leaving
        served.health.leave()
        assert status(await second.read()) == NOT_SERVING
        second.cancel()
