import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import arguments
from service.settings import DEFAULT_MODELS


def given(*argv: str) -> object:
    options = arguments.make_parser("python -m bench.something", "One line.\nAnother.")
    arguments.add_bundle(options)
    arguments.add_json(options)
    arguments.add_serve(options)
    return options.parse_args(argv)


def test_what_is_left_out_has_a_default_and_the_rest_is_of_the_server(tmp_path: Path) -> None:
    assert vars(given()) == {"bundle": DEFAULT_MODELS / "en-de" / "bundle", "json": None, "serve": []}
    out = tmp_path / "x.json"
    read = vars(given(f"--bundle={tmp_path}", f"--json={out}", "--", "--threads", "2"))
    assert read == {"bundle": tmp_path, "json": out, "serve": ["--threads", "2"]}


def test_flags_cannot_be_shortened_and_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        given("--bun=x")
    assert exit_info.value.code == 2
    assert (
        capsys.readouterr().err
        == "python -m bench.something: unrecognized arguments: --bun=x; did you mean --bundle?\n"
    )


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (arguments.positive, "0"),
        (arguments.positive, "nan"),
        (arguments.not_negative, "-0.1"),
        (arguments.share, "1.1"),
        (arguments.whole, "1.0"),
        (arguments.count, "0"),
        (arguments.input_file, "/nowhere/x"),
    ],
)
def test_what_is_out_of_its_bounds_is_refused(kind: Callable[[str], object], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        kind(text)


def test_names_are_some_of_those_that_there_are() -> None:
    read = arguments.some_of(["offline", "single"])
    assert read("single,offline") == ["single", "offline"]
    with pytest.raises(argparse.ArgumentTypeError, match=r"^no 'served'; there are offline, single$"):
        read("offline,served")


def test_several_numbers_have_commas_between() -> None:
    assert arguments.counts("1,2,40") == [1, 2, 40]
    with pytest.raises(argparse.ArgumentTypeError, match="must be at least 1, not 0"):
        arguments.counts("1,0")
