"""The measurement of training, on batches that are small."""

import json
from pathlib import Path

import pytest

from bench.cli import main

pytestmark = pytest.mark.torch


def test_each_length_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    arguments = ["--lengths", "4,8", "--rounds", "1", "--vocabulary-size", "300", "--batch-tokens", "64"]
    assert main(["training", *arguments, "--json", str(out)]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[:4]] == ["length", "---", "4", "8"]
    rows = json.loads(out.read_text())["rows"]
    assert all(row["tokens_per_s"] > 0 for row in rows)
