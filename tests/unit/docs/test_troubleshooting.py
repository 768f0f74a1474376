"""docs/troubleshooting.md shows the lines that people see."""

import sys
from pathlib import Path

import onnxruntime
import pytest

from dragoman import AsyncClient
from dragoman.address import Address
from dragoman.bundle import no_bundles
from dragoman.cli import main
from dragoman.errors import DrainingError, LoadingError
from plugins.gpu import cuda
from service.handlers.gate import Gate, too_late
from service.handlers.translation import TranslationHandlers
from service.registry.folders import one_name
from service.rpc.translation import Translation
from service.settings import Settings, SettingsError, load
from service.telemetry.metrics import Metrics
from tests.grpc_server import grpc_server

PAGE = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_no_model() -> None:
    assert f"dragoman serve: {no_bundles(Path('/home/me/models'))}\n" in PAGE
    assert "there is no bundle (no bundle.json in or below it)" in str(no_bundles(Path(__file__).parent))
    assert "`there is no bundle (no bundle.json in or below it)`" in PAGE


def test_two_models_of_one_name() -> None:
    why = one_name("en-de", [Path("models/en-de/bundle"), Path("models/opus/bundle")])
    assert f"dragoman serve: {why}\n" in PAGE


def test_wrong_settings(monkeypatch) -> None:
    with pytest.raises(SettingsError) as wrong:
        load({"slots": "0"})
    assert f"dragoman serve: {wrong.value}\n" in PAGE
    monkeypatch.setenv("DRAGOMAN_SLOT", "4")
    with pytest.raises(SettingsError) as unknown:
        load()
    assert f"dragoman serve: {unknown.value}\n" in PAGE


def test_an_address_without_a_port() -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        Address.parse("localhost")
    assert str(refused.value) in PAGE


def test_no_library_of_a_gpu(monkeypatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    reason = cuda.missing()
    assert reason is not None
    assert reason in PAGE


def test_a_missing_extra(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "model.train", raising=False)
    assert main(["train", "--train=a.tsv", "--dev=b.tsv", "--out=run"]) == 2
    assert capsys.readouterr().err in PAGE


def test_the_client_alone(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "dragoman_server", None)
    assert main(["serve"]) == 2
    assert capsys.readouterr().err in PAGE


async def test_loading_and_draining() -> None:
    gate, metrics = Gate(), Metrics()
    handlers = TranslationHandlers(gate, Settings(), metrics)
    service = Translation(handlers, Settings().max_request_bytes)
    async with grpc_server(service.add_to) as address, AsyncClient(address, retries=0) as client:
        with pytest.raises(LoadingError) as loading:
            await client.translate("Good morning.", model="en-de")
        gate.close()
        with pytest.raises(DrainingError) as draining:
            await client.translate("Good morning.", model="en-de")
    assert f"LoadingError: {loading.value}\n" in PAGE
    assert f"`{draining.value}` (`DrainingError`)" in PAGE


def test_late() -> None:
    assert too_late(0.5) in PAGE
