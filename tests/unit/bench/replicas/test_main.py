"""The whole command, on real servers, briefly."""

import json
from pathlib import Path

import pytest

from bench.replicas.__main__ import main
from bench.replicas.balancing import BALANCERS
from tests.server_process import BUNDLE


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_it_measures_and_simulates(tmp_path: Path, capsys) -> None:
    found, picture = tmp_path / "found.json", tmp_path / "found.png"
    brief = ["--sentences=5", "--seconds=0.1", "--rounds=1", "--fleets=1"]
    assert main([*brief, f"--json={found}", f"--plot={picture}"]) == 0
    report = json.loads(found.read_text())
    assert "| balancing |" in capsys.readouterr().out
    assert len(report["sentences"]) == 5
    assert all(sentence["alone_s"] > 0 and sentence["source_tokens"] > 1 for sentence in report["sentences"])
    inside = [each["inside"] for each in report["occupancies"]]
    assert inside[0] < inside[-1]
    assert all(each["cost_s"] > 0 for each in (*report["occupancies"], *report["scales"]))
    assert report["refusal_s"] > 0
    assert [scale["replicas"] for scale in report["scales"]] == [1, 2]
    assert len(report["steady"]) == len(report["storms"]) == len(BALANCERS)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_bundle_that_is_not_there_is_named(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--bundle={tmp_path}"])
    assert ended.value.code == 2
    assert str(tmp_path) in capsys.readouterr().err.splitlines()[-1]
