"""docs/troubleshooting.md shows the lines that people see."""

from pathlib import Path

import pytest

from dragoman.address import Address
from dragoman.bundle import no_bundles
from dragoman.cli import _extra_of
from service.rpc import servicer
from service.runtime import cuda
from service.settings import SettingsError, load

PAGE = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_no_model() -> None:
    assert f"dragoman serve: {no_bundles(Path('/home/me/models'))}\n" in PAGE
    assert "there is no bundle (no bundle.json in or below it)" in str(no_bundles(Path(__file__).parent))
    assert "`there is no bundle (no bundle.json in or below it)`" in PAGE


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
    monkeypatch.setattr(cuda, "_PROVIDER", "AbsentExecutionProvider")
    reason = cuda.missing()
    assert reason is not None
    assert reason.replace("Absent", "CUDA") in PAGE


def test_a_missing_extra() -> None:
    assert f"dragoman train needs the {_extra_of('torch', 'train')}\n" in PAGE


def test_loading_draining_and_late() -> None:
    for refuse in (servicer._refuse_loading, servicer._refuse_draining):
        with pytest.raises(ConnectionError) as refused:
            refuse()
        assert str(refused.value) in PAGE
    assert servicer._too_late(0.5) in PAGE
