"""What one and two replicas cost, with real servers for a moment."""

import json
from pathlib import Path

import pytest

from bench.cli import main
from tests.server_process import BUNDLE


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_one_and_two_replicas_are_measured(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("Good morning.\nWhere is he?\n")
    out = tmp_path / "out.json"
    arguments = ["--data", str(tmp_path / "texts.txt"), "--seconds=0.1", "--rounds=1", "--bundle", str(BUNDLE)]
    assert main(["replicas", *arguments, "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    assert [row["replicas"] for row in report["replicas"]] == [1, 2]
    assert all(row["cpu_ms"] > 0 for row in [*report["replicas"], *report["occupancies"]])
    assert (report["sentences"], len(report["occupancies"])) == (2, 7)
    assert report["refusal_ms"] > 0
