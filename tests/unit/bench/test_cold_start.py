import sys
from pathlib import Path

import pytest

from bench.cli import main
from bench.cold_start import started
from bench.server_process import ServerError

ROOT = Path(__file__).parents[3]
SLOW_STARTER = [sys.executable, str(Path(__file__).with_name("slow_starter.py"))]


@pytest.fixture(autouse=True)
def checkout_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_start_is_measured_until_the_health_service_says_serving() -> None:
    report = started(SLOW_STARTER, 3)
    # It listens at once and is not serving for half a second.
    assert report["time_to_serving_s"] >= 0.5
    assert report["requests"] == 3
    assert report["first_request_ms"] > 0
    assert report["model"] == "en-de"
    assert 0 < report["rss_idle_mib"] <= report["rss_peak_mib"]
    assert report["exit_code"] == 0


def test_server_that_does_not_start_is_an_error_that_says_how_it_ended() -> None:
    with pytest.raises(ServerError, match=r"a server ended with exit code 2: .*--no-such-flag"):
        started([*SLOW_STARTER, "--no-such-flag"], 1)


def test_command_exits_1_when_the_server_does_not_start(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["cold-start", "--requests", "1", "--", "--no-such-flag"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "dragoman bench cold-start: a server ended with exit code" in err
