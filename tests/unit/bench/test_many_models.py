import json
from pathlib import Path

import pytest

from bench.cli import main
from bench.many_models import at_most
from bench.metrics_page import Page
from tests.synthetic import Synthetic

ROOT = Path(__file__).parents[3]
BUCKETS = """
# TYPE dragoman_model_wait_duration_seconds histogram
dragoman_model_wait_duration_seconds_bucket{le="0.5"} 6
dragoman_model_wait_duration_seconds_bucket{le="1.0"} 9
dragoman_model_wait_duration_seconds_bucket{le="+Inf"} 10
"""


@pytest.fixture(autouse=True)
def checkout_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_three_models_in_the_memory_of_one(int8: Synthetic, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = ["--models=3", "--room=1", "--clients=4", "--duration=0.5", f"--json={out}"]
    assert main(["many-models", "--bundle", str(int8.bundle.path), *arguments]) == 0
    report = json.loads(out.read_text())
    assert (report["failed_calls"], report["failed_loads"]) == (0, 0)
    assert report["loads"] - report["evictions"] == 1
    assert report["calls"] >= 4
    assert 10 < report["empty_server_mib"] < report["peak_mib"]


def test_a_share_of_waits_is_at_most_the_bound_of_its_bucket() -> None:
    page = Page.parse(BUCKETS)
    assert [at_most(page, share) for share in (0.5, 0.6, 0.9, 1.0)] == [0.5, 0.5, 1.0, float("inf")]
    assert at_most(Page.parse(BUCKETS.replace("6\n", "0\n").replace("9\n", "0\n").replace("10\n", "0\n")), 0.5) == 0


def test_a_folder_that_is_no_bundle_is_told_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["many-models", "--bundle", str(tmp_path)])
    assert ended.value.code == 2
    assert "bundle.json" in capsys.readouterr().err.splitlines()[-1]
