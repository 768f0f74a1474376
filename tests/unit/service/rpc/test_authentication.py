"""Keys on a real gRPC server."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import grpc.aio
import pytest

from dragoman import AsyncClient, LoadingError, UnauthenticatedError
from dragoman.errors import from_rpc_error
from plugins.access import api_keys
from plugins.access.api_keys import KeyEntry, KeyStore
from plugins.access.callers import KeyHolders
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.rpc.translation import Translation
from service.settings import Settings
from service.telemetry.access_log import AccessLog
from service.telemetry.logs import Log
from service.telemetry.metrics import Metrics
from tests.grpc_server import grpc_server

PATIENCE_S = 60
SERVICE = "dragoman.v1.Translation"
METHODS = ["TranslateText", "StreamTranslateText", "ListModels"]


class Ring(KeyStore):
    """Says which keys it was asked for."""

    def __init__(self, entries: Mapping[str, KeyEntry], asked: list[str]) -> None:
        super().__init__(entries)
        self._asked = asked

    def find(self, key: str) -> str | None:
        self._asked.append(key)
        return super().find(key)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def looked_up() -> list[str]:
    return []


@pytest.fixture
async def address(metrics: Metrics, lines: list[str], looked_up: list[str]) -> AsyncIterator[str]:
    ring = Ring({"alice": api_keys.entry_of("key")}, looked_up)
    callers = KeyHolders(metrics, lambda: ring)
    access_log = AccessLog(metrics, Log(lines.append, as_json=True), "all")
    handlers = TranslationHandlers(Gate(), Settings(), metrics, callers, access_log)
    async with grpc_server(Translation(handlers, 1_000_000).add_to) as address:
        yield address


async def test_a_key_lets_in_under_its_name(address, lines) -> None:
    for metadata in ((("authorization", "Bearer key"),), (("x-api-key", "key"),)):
        async with grpc.aio.insecure_channel(address) as channel:
            for method in ("TranslateText", "ListModels"):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await channel.unary_unary(f"/{SERVICE}/{method}")(b"", timeout=PATIENCE_S, metadata=metadata)
                assert isinstance(from_rpc_error(caught.value), LoadingError)  # it was let in
    logged = [json.loads(line) for line in lines]
    assert [(line["method"], line["caller"]) for line in logged] == [
        ("TranslateText", "alice"),
        ("ListModels", "alice"),
    ] * 2


async def test_a_key_is_looked_up_once_a_call(address, looked_up) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError):
                await channel.unary_unary(f"/{SERVICE}/ListModels")(b"", metadata=(("x-api-key", "key"),))
    assert len(looked_up) == 3


@pytest.mark.parametrize("access", [{}, {"api_key": "wrong"}])
async def test_without_one_every_method_is_refused_counted_and_logged(address, metrics, lines, access) -> None:
    async with AsyncClient(address, timeout_s=PATIENCE_S, **access) as client:
        for call in (client.translate("a", model="m"), anext(client.stream("a", model="m")), client.list_models()):
            with pytest.raises(UnauthenticatedError) as caught:
                await call
            assert "wrong" not in str(caught.value)
    for method in METHODS:
        assert metrics.total("requests_total", method=method, code="UNAUTHENTICATED") == 1
    assert metrics.total("rejected_total", reason="UNAUTHENTICATED") == 3
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
