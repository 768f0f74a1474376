import json
from pathlib import Path

from bench.gpu.report import Report, section, verdict
from bench.gpu.runner import Outcome

GOOD = Outcome(2.0, None, {"steps": 200, "left_out": None, "checks": {"the same tokens": True}})
NOT_SO = Outcome(3.0, None, {"checks": {"the same tokens": False, "no copies": True}})
FAILED = Outcome(4.0, "ended by SIGSEGV: out | of memory", {"rows": [{"slots": 1, "tokens_per_s": 12345.6}]})


def test_what_became_of_a_part_is_one_line() -> None:
    assert verdict(GOOD) == "as expected"
    assert verdict(NOT_SO) == "NOT SO: the same tokens"
    assert verdict(FAILED) == "FAILED: ended by SIGSEGV: out | of memory"
    assert verdict(Outcome(1.0, None, {"copy": 1.0})) == "done"


def test_figures_are_lines_and_rows_are_tables() -> None:
    rows = [{"slots": 1, "step_ms": 0.12345}, {"slots": 2, "step_ms": 1.5, "peer": 3.0}]
    text = section(
        "speed", Outcome(5.0, None, {"weight_bytes": 12, "left_out": None, "order": ["a", "b"], "rows": rows})
    )
    lines = text.splitlines()
    assert "- weight_bytes: 12" in lines
    assert "- order: a; b" in lines
    assert "left_out" not in text
    assert "| slots | step_ms | peer |" in lines
    assert "| 1 | 0.1235 |  |" in lines or "| 1 | 0.1234 |  |" in lines
    assert "| 2 | 1.5 | 3 |" in lines


def test_files_are_written_after_each_part(tmp_path: Path) -> None:
    as_json, as_markdown = tmp_path / "gpu.json", tmp_path / "gpu.md"
    report = Report({"device": "cpu"}, as_json, as_markdown)
    report.add("graphs", GOOD)
    assert json.loads(as_json.read_text())["parts"]["graphs"]["steps"] == 200
    report.add("speed", FAILED)
    parts = json.loads(as_json.read_text())["parts"]
    assert parts["speed"] == {"seconds": 4.0, "error": "ended by SIGSEGV: out | of memory", **FAILED.figures}
    assert list(parts) == ["graphs", "speed"]
    lines = as_markdown.read_text().splitlines()
    assert "- device: cpu" in lines
    assert "| speed | 4 | FAILED: ended by SIGSEGV: out / of memory |" in lines
    assert "| 1 | 12,346 |" in lines
    assert sorted(tmp_path.iterdir()) == [as_json, as_markdown]


def test_a_part_fails_by_an_error_or_by_what_it_found() -> None:
    report = Report({}, None, None)
    for name, outcome in {"good": GOOD, "not so": NOT_SO, "failed": FAILED}.items():
        report.add(name, outcome)
    assert report.failed == ["not so", "failed"]
