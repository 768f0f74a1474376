from pathlib import Path

import pytest

from bench.cli import main
from bench.reload_soak import reloaded
from bench.server_process import ServerError
from tests.synthetic import Synthetic

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def checkout_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_memory_is_measured_before_and_after_each_reload(int8: Synthetic) -> None:
    rows = reloaded(int8.bundle.path, 2, ["--threads=1"])
    assert [row["reloads"] for row in rows] == [0, 1, 2]
    assert min(row["resident_mib"] for row in rows) > 10


def test_command_exits_1_when_the_server_does_not_start(capfd: pytest.CaptureFixture[str], int8: Synthetic) -> None:
    assert main(["reload-soak", "--bundle", str(int8.bundle.path), "--", "--no-such-flag"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "dragoman bench reload-soak: a server ended with exit code" in err


def test_a_reload_that_does_not_end_is_an_error(int8: Synthetic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.reload_soak._TIMEOUT_S", 0.0)
    monkeypatch.setattr("bench.reload_soak._translate", lambda *_: None)
    monkeypatch.setattr("bench.reload_soak._is_replaced", lambda *_: False)
    with pytest.raises(ServerError, match="reload 1 did not end"):
        reloaded(int8.bundle.path, 1, ["--threads=1"])
