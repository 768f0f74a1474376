import json
from pathlib import Path

from bench.files import write_json


def test_a_report_is_json_with_paths_as_text(tmp_path: Path) -> None:
    write_json(tmp_path / "out.json", {"rate": 1.5, "data": Path("a/b"), "none": None})
    assert json.loads((tmp_path / "out.json").read_text()) == {"rate": 1.5, "data": "a/b", "none": None}


def test_a_report_for_no_file_is_not_written() -> None:
    write_json(None, {"rate": object()})
