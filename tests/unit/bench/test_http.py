"""The table of what calls cost by their protocol, with a real server for a moment."""

import json
from pathlib import Path

import pytest

from bench import http
from bench.http import Row, as_markdown, medians
from tests.server_process import BUNDLE


def test_a_row_is_the_median_of_its_rounds() -> None:
    rows = [Row("grpc", 1, rate, cpu, 1.0) for rate, cpu in ((100.0, 0.9), (300.0, 0.7), (200.0, 0.8))]
    assert medians([*rows, Row("http", 1, 5.0, 0.5, 2.0)]) == [
        Row("grpc", 1, 200.0, 0.8, 1.0),
        Row("http", 1, 5.0, 0.5, 2.0),
    ]


def test_the_table() -> None:
    assert as_markdown([Row("http", 16, 1234.5, 0.5, 2.0)]).splitlines()[-1] == "| http | 16 | 1234 | 0.50 | 2.00 |"


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_all_protocols_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seconds=0.1", "--rounds=1", "--concurrency=2", f"--bundle={BUNDLE}", f"--json={tmp_path / 'out'}"]
    assert http.main(arguments) == 0
    rows = json.loads((tmp_path / "out").read_text())["rows"]
    assert [row["protocol"] for row in rows] == ["grpc", "http", "connect", "libretranslate"]
    assert all(row["calls_per_s"] > 0 and row["cpu_ms"] > 0 for row in rows)
    assert capsys.readouterr().out.startswith("| protocol |")
