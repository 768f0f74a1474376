"""Keys on a real gRPC server."""

import asyncio
import json
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from dragoman import AsyncClient, UnauthenticatedError
from dragoman.errors import from_rpc_error
from dragoman.v1.translation_pb2_grpc import TranslationServicer, add_TranslationServicer_to_server
from service.rpc.authentication import Authentication
from service.security import api_keys
from service.security.api_keys import KeyStore
from service.security.callers import Callers
from service.telemetry.access_log import AccessLog
from service.telemetry.logs import Log
from service.telemetry.metrics import Metrics

PATIENCE_S = 60
SERVICE = "dragoman.v1.Translation"
METHODS = ["TranslateText", "StreamTranslateText", "ListModels"]


class Reached(TranslationServicer):
    """Every call that gets here fails with the name of its caller."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def ListModels(self, request, context) -> None:
        await context.abort(grpc.StatusCode.ABORTED, self._callers.identify(context).name)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
async def address(metrics: Metrics, lines: list[str]) -> AsyncIterator[str]:
    ring = KeyStore({"alice": api_keys.entry_of("key")})
    callers = Callers(metrics, lambda: ring)
    access_log = AccessLog(Log(lines.append, as_json=True), "all")
    server = grpc.aio.server(interceptors=[Authentication(SERVICE, callers, metrics, access_log)])
    add_TranslationServicer_to_server(Reached(callers), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


async def test_a_key_lets_in(address) -> None:
    for access in ({"api_key": "key"}, {"metadata": {"x-api-key": "key"}}):
        async with AsyncClient(address, **access) as client:
            with pytest.raises(Exception, match="alice"):
                await client.list_models()


@pytest.mark.parametrize("access", [{}, {"api_key": "wrong"}])
async def test_without_one_every_method_is_refused_counted_and_logged(address, metrics, lines, access) -> None:
    async with AsyncClient(address, timeout_s=PATIENCE_S, **access) as client:
        for call in (client.translate("a", model="m"), anext(client.stream("a", model="m")), client.list_models()):
            with pytest.raises(UnauthenticatedError) as caught:
                await call
            assert "wrong" not in str(caught.value)
    for method in METHODS:
        assert metrics.requests_total.labels(method, "UNAUTHENTICATED")._value.get() == 1
    assert metrics.rejected_total.labels("UNAUTHENTICATED")._value.get() == 3
    logged = [json.loads(line) for line in lines]
    assert [line["method"] for line in logged] == METHODS
    assert {(line["code"], line["reason"], line["caller"]) for line in logged} == {
        ("UNAUTHENTICATED", "UNAUTHENTICATED", "ipv4:127.0.0.1")
    }
    assert "wrong" not in "".join(lines)


async def test_a_call_without_a_key_is_refused_before_it_sends_a_message(address) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.stream_unary(f"/{SERVICE}/TranslateText")(timeout=PATIENCE_S)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert isinstance(from_rpc_error(caught.value), UnauthenticatedError)


async def test_an_unknown_method_is_no_label(address, metrics) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(f"/{SERVICE}/Secret")(b"", timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert [sample for sample in metrics.requests_total.collect()[0].samples if sample.name.endswith("_total")] == []


async def test_many_refused_calls_at_a_time_leave_nothing_behind(address) -> None:
    async with AsyncClient(address, timeout_s=PATIENCE_S) as client:
        ends = await asyncio.gather(
            *(client.translate("a" * 10_000, model="m") for _ in range(200)), return_exceptions=True
        )
    assert {type(end) for end in ends} == {UnauthenticatedError}
