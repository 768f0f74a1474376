"""`make overload` in small: every part of it once, on a real server. What it says of speed is not looked at."""

import json
from pathlib import Path

import pytest

from bench.cli import main
from bench.overload import drive
from bench.overload.targets import Figures

BUNDLE = Path("models/en-de/bundle")


def test_a_storm_is_told_from_its_beginning_to_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in {"_WARMUP_S": 0.2, "_LEAD_S": 0.5, "_AFTER_S": 1.5}.items():
        monkeypatch.setattr(drive, name, seconds)
    out, picture = tmp_path / "out.json", tmp_path / "out.png"
    times = ["--peak", "1", "--steady", "0.5", "--storm", "1", "--timeout", "60", "--texts-per-request", "4"]
    serve = ["--models", str(BUNDLE), "--threads", "1"]
    code = main(["overload", *times, "--json", str(out), "--plot", str(picture), "--", *serve])
    report = json.loads(out.read_text())
    checks, report = report["checks"], report["details"]
    assert code == (0 if all(checks.values()) else 1)
    # Whatever the machine does meanwhile, nobody is left without an answer.
    assert checks["every request"]
    assert sum(report["outcomes"].values()) == report["requests"] == sum(report["timeline"]["offered"])
    assert report["outcomes"]["failed"] == report["outcomes"]["cancelled"] == 0
    assert [phase["name"] for phase in report["phases"]] == ["before", "storm", "after"]
    assert report["phases"][1]["rate"] == pytest.approx(5 * report["peaks"][0])
    assert report.keys() >= set(Figures._fields)
    assert report["resident"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "goodput in the storm" in capsys.readouterr().out


def test_a_server_that_does_not_start_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overload", "--", "--models", "no/such/folder"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("dragoman bench overload: a server ended with exit code")
    assert error.count("\n") == 1
