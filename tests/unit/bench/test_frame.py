"""The frame of measurements: exit codes, tables, rounds in turn."""

import argparse
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import frame
from bench.frame import ArgumentError, Figures, log_with_time, write_json
from bench.server_process import ServerError
from dragoman.errors import BundleError, DataError, InternalError

FIGURES: Figures = {
    "rate": 12345.6,
    "none": None,
    "rows": [{"a": 1, "b": 0.12345}, {"a": "x|y", "c": [1.5, 2.0]}],
    "details": {"of": "the file"},
}


def run(figures: Figures | Exception, *argv: str) -> int:
    def measure(arguments: argparse.Namespace) -> Figures:
        if isinstance(figures, Exception):
            raise figures
        return figures

    example = SimpleNamespace(__doc__="An example.", add_arguments=lambda parser: None, measure=measure)
    return frame.run("example", example, list(argv))


def test_figures_are_a_list_and_tables_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert run(FIGURES, "--json", str(out)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "- rate: 12,346",
        "",
        "| a | b | c |",
        "| --- | --- | --- |",
        "| 1 | 0.1235 |  |",
        "| x/y |  | 1.5; 2 |",
    ]
    report = json.loads(out.read_text())
    assert FIGURES.items() <= report.items()
    assert report["arguments"] == {"json": str(out)}
    assert {"date", "cores"} <= report.keys()


def test_a_check_that_does_not_hold_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run({"checks": {"it is so": True}}) == 0
    assert run({"checks": {"it is so": True, "that too": False}}) == 1
    assert "NOT SO: that too" in capsys.readouterr().out


@pytest.mark.parametrize("error", [ArgumentError("no good"), DataError("no good"), BundleError("no good")])
def test_what_is_no_good_is_exit_code_2_and_one_line(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(error)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "dragoman bench example: no good\n"


@pytest.mark.parametrize("error", [ServerError("it ended"), InternalError("it ended")])
def test_a_server_that_fails_is_exit_code_1(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(error) == 1
    assert capsys.readouterr() == ("", "dragoman bench example: it ended\n")


def test_rounds_take_turns() -> None:
    order: list[str] = []
    measures = [lambda name=name: order.append(name) or len(order) for name in "ab"]
    assert frame.in_turn(measures, 2) == [[1, 3], [2, 4]]
    assert order == ["a", "b", "a", "b"]


def test_a_report_is_json_with_paths_as_text(tmp_path: Path) -> None:
    write_json(tmp_path / "out.json", {"rate": 1.5, "data": Path("a/b"), "none": None})
    assert json.loads((tmp_path / "out.json").read_text()) == {"rate": 1.5, "data": "a/b", "none": None}


def test_a_report_for_no_file_is_not_written() -> None:
    write_json(None, {"rate": object()})


def test_a_line_comes_after_the_seconds_since_the_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    log = log_with_time()
    log("sweep offline")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r" +\d+\.\d s  sweep offline\n", printed.err)
