"""Servers of one and of two processes, for a moment."""

import json
from pathlib import Path

import pytest

from bench.cli import main
from tests.server_process import BUNDLE


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_one_and_two_processes_are_measured(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("Good morning.\nWhere is he?\n")
    out = tmp_path / "out.json"
    arguments = ["--data", str(tmp_path / "texts.txt"), "--seconds=0.2", "--rounds=1", "--bundle", str(BUNDLE)]
    assert main(["processes", *arguments, "--json", str(out)]) == 0
    one, two = json.loads(out.read_text())["processes"]
    assert (one["processes"], two["processes"]) == (1, 2)
    assert all(row["calls_per_s"] > 0 and row["cpu_ms"] > 0 for row in (one, two))
    assert one["idle_mib"] < two["idle_mib"] < 2 * one["idle_mib"]
