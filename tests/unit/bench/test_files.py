import json
from pathlib import Path

import pytest

from bench.files import write_json, write_whole


def test_a_file_is_replaced_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    write_whole(tmp_path / "out", "new")
    assert (tmp_path / "out").read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_a_report_is_json_with_paths_as_text(tmp_path: Path) -> None:
    write_json(tmp_path / "out.json", {"rate": 1.5, "data": Path("a/b"), "none": None})
    assert json.loads((tmp_path / "out.json").read_text()) == {"rate": 1.5, "data": "a/b", "none": None}


def test_a_report_for_no_file_is_not_written() -> None:
    write_json(None, {"rate": object()})


def test_what_is_no_part_of_a_report_leaves_the_file_alone(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="set is no part of a report"):
        write_json(tmp_path / "out.json", {"rates": {1, 2}})
    assert list(tmp_path.iterdir()) == []
