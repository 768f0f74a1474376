"""The frame of measurements: exit codes, tables, rounds in turn."""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import frame
from bench.frame import ArgumentError, Figures
from bench.load.texts import DataFileError
from bench.server_process import ServerError
from dragoman.errors import BundleError, InternalError

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


@pytest.mark.parametrize("error", [ArgumentError("no good"), DataFileError("no good"), BundleError("no good")])
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
