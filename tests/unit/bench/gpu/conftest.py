import time
from pathlib import Path

import pytest

from bench.gpu.task import Setup, Task
from tests.synthetic import Synthetic

ROOT = Path(__file__).parents[4]
CHECKPOINT = ROOT / "models" / "en-de" / "checkpoint"
PAIRS = ROOT / "tests" / "data" / "en-de.tsv"


@pytest.fixture(autouse=True)
def checkout_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Little of everything, on a CPU."""
    work = tmp_path / "work"
    work.mkdir()
    return Setup(
        device="cpu",
        checkpoint=CHECKPOINT,
        data=PAIRS,
        work=work,
        sentences=4,
        steps=12,
        most_slots=2,
        served_slots=2,
        load_s=0.3,
        segments=40,
    )


@pytest.fixture
def task(setup: Setup, fp32: Synthetic) -> Task:
    """Of the default model, in whose place is a tiny one: the fp32 bundle stands for that in fp16, too."""
    folder = setup.work / "default"
    folder.mkdir()
    for precision in ("fp16", "fp32"):
        (folder / f"bundle-{precision}").symlink_to(fp32.bundle.path)
    return Task(setup, "default", time.monotonic() + 600.0, lambda figures: None)
