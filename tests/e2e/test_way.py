"""One sentence pays for one sentence: what of the server a call passes stays within bounds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server_process import BUNDLE

# What was reached; the aim is in docs/load-testing.md. Files and functions of `service` and its plugins, and calls of
# them on the event loop, which do not depend on the translation.
_BOUNDS = {"plain": (25, 120, 96), "cached": (17, 64, 81), "HTML": (34, 173, 177)}
_STEP_CALLS = 13
_SENTENCE_CALLS = 54


@pytest.mark.skipif(not (BUNDLE / "bundle.json").is_file(), reason="models/en-de/bundle is not there")
def test_a_call_passes_no_more_of_the_server_than_it_did(tmp_path: Path) -> None:
    dragoman, report_file = [sys.executable, "-m", "dragoman"], tmp_path / "way.json"
    command = [*dragoman, "bench", "way", "--bundle", str(BUNDLE), "--json", str(report_file)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    report = json.loads(report_file.read_text())
    rows = {row["call"]: row for row in report["rows"]}
    for name, bounds in _BOUNDS.items():
        counts = tuple(rows[name][key] for key in ("files", "functions", "calls_on_the_loop"))
        assert all(0 < count <= bound for count, bound in zip(counts, bounds, strict=True)), (name, counts)
    assert 0 < report["on the engine's thread: calls a decode step of one row"] <= _STEP_CALLS
    assert 0 < report["and a sentence besides"] <= _SENTENCE_CALLS
