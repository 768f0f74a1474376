from pathlib import Path
from typing import Any

import pytest

from bench.gpu import parts as gpu_parts
from bench.gpu import run as gpu_run
from bench.gpu.parts import Part
from bench.gpu.report import Report
from bench.gpu.run import MissingDeviceError
from bench.gpu.setup import Setup

BEHAVIOURS = "tests.unit.bench.gpu.behaviours"


def part(name: str, **fields: Any) -> Part:
    return Part(name, f"{BEHAVIOURS}:{name}", 1.0, **{"needs": (), **fields})


@pytest.fixture
def setup_file(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gpu_run, "LIBRARIES", part("succeeds"))
    file = setup.work / "setup.json"
    setup.write(file)
    return file


def test_parts_run_in_order_and_none_ends_another(setup_file: Path) -> None:
    report, said = Report({}, None, None), list[str]()
    wanted = [part("crashes"), part("fails"), part("exits")]
    gpu_run.run(wanted, setup_file, 600.0, report, lambda name, outcome: said.append(name))
    assert said == ["succeeds", "crashes", "fails", "exits"]
    assert report.failed == ["crashes", "fails", "exits"]


def test_a_part_without_its_model_says_why(setup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"fp16": f"{BEHAVIOURS}:fails", "peer": f"{BEHAVIOURS}:succeeds"}
    monkeypatch.setattr(gpu_parts, "_PREPARATIONS", made)
    report = Report({}, None, None)
    wanted = [part("exits", needs=("fp16",)), part("succeeds", needs=("peer",), wants=("fp16",))]
    gpu_run.run(wanted, setup_file, 600.0, report, lambda name, outcome: None)
    assert report.outcomes["exits"].error == "model default fp16: RuntimeError: no memory"
    assert report.outcomes["succeeds"].error is None
    assert report.failed == ["exits", "model default fp16"]


def test_a_model_that_is_not_made_in_time_is_named(setup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_parts, "_PREPARATIONS", {"fp16": f"{BEHAVIOURS}:hangs"})
    monkeypatch.setattr(gpu_run, "_WAITED", 0.0)
    report = Report({}, None, None)
    gpu_run.run([part("exits", needs=("fp16",))], setup_file, 600.0, report, lambda name, outcome: None)
    assert report.outcomes["exits"].error == "model default fp16: was not made in time"
    assert (report.outcomes["model default fp16"].error or "").startswith("was ended after")


def test_a_part_that_measures_time_waits_for_all_models(setup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"fp16": f"{BEHAVIOURS}:succeeds", "peer": f"{BEHAVIOURS}:succeeds"}
    monkeypatch.setattr(gpu_parts, "_PREPARATIONS", made)
    models = gpu_run.Models([part("exits", size="large", needs=("fp16", "peer"))], setup_file)
    assert models.wait(part("succeeds", quiet=True), 60.0) is None
    assert [outcome.error for outcome in models.end().values()] == [None, None]


def test_without_the_device_nothing_runs(setup_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_run, "LIBRARIES", part("misses"))
    report = Report({}, None, None)
    with pytest.raises(MissingDeviceError, match="no driver"):
        gpu_run.run([part("exits")], setup_file, 600.0, report, lambda name, outcome: None)
    assert not report.outcomes


def test_speed_is_a_part_a_size_and_every_part_has_its_models() -> None:
    wanted = gpu_parts.parts(["default", "large"], ["speed", "parity"])
    assert [each.name for each in wanted] == ["parity", "speed default", "speed large"]
    made = [each.name for each in gpu_parts.preparations(wanted).values()]
    assert made == [
        "model default fp16",
        "model default fp32",
        "model default peer",
        "model large fp16",
        "model large peer",
    ]
    assert len(gpu_parts.parts(["default"])) == len(gpu_parts.names())
