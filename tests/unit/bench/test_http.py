"""What calls cost by their protocol, with a real server for a moment."""

import json
from pathlib import Path

import pytest

from bench.cli import main
from tests.server_process import BUNDLE


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_all_protocols_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seconds=0.1", "--rounds=1", "--concurrency=2", f"--bundle={BUNDLE}", f"--json={tmp_path / 'out'}"]
    assert main(["http", *arguments]) == 0
    rows = json.loads((tmp_path / "out").read_text())["rows"]
    assert [row["protocol"] for row in rows] == ["grpc", "http", "connect", "libretranslate"]
    assert all(row["calls_per_s"] > 0 and row["cpu_ms"] > 0 for row in rows)
    assert capsys.readouterr().out.startswith("| protocol |")
