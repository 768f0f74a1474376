"""One line for what is wrong with the arguments of a command."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.arguments import Parser, count, language, number, output_file, server_address, whole


@pytest.mark.parametrize("arguments", [["--no-such-flag"], ["--number=x"], []])
def test_an_error_is_one_line_and_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("dragoman x")
    parser.add_argument("--number", type=int)
    parser.add_argument("place")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("dragoman x: ")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--frm", "en", "a"], "--frm; did you mean --from?"),
        (["--verbose", "--frm=en", "a"], "--verbose --frm=en; did you mean --from?"),
        (["--source=en", "a"], "--source=en; did you mean --from?"),
        (["--target-language", "a"], "--target-language"),  # which this command has no flag for
        (["--verbose", "a"], "--verbose"),
    ],
)
def test_a_misspelt_flag_is_asked_for(arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("dragoman x")
    parser.add_argument("--from")
    parser.add_argument("texts", nargs="*")
    with pytest.raises(SystemExit):
        parser.parse_args(arguments)
    assert capsys.readouterr().err == f"dragoman x: unrecognized arguments: {hint}\n"


def test_a_misspelt_flag_is_asked_for_where_that_makes_another_one_missing(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("dragoman x")
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--to")
    with pytest.raises(SystemExit):
        parser.parse_args(["--to=--x", "--bundel=a"])
    said = "the following arguments are required: --bundle; unrecognized: --bundel=a; did you mean --bundle?"
    assert capsys.readouterr().err == f"dragoman x: {said}\n"


def test_a_flag_is_written_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("dragoman x")
    parser.add_argument("--to")
    parser.add_argument("--target-prefix")
    with pytest.raises(SystemExit):
        parser.parse_args(["--target", "de"])
    assert capsys.readouterr().err == "dragoman x: unrecognized arguments: --target de; did you mean --to?\n"


def test_an_error_of_several_lines_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Parser("dragoman x").error("two\n  lines")
    assert capsys.readouterr().err == "dragoman x: two lines\n"


def test_an_output_file_has_a_folder_and_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert output_file("x") == Path("x")
    for text, why in (
        ("", "has no name"),
        (str(tmp_path), "is a folder"),
        (f"{tmp_path}/none/x", f"there is no folder {tmp_path}/none"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=f"^cannot write a file '{text}': {why}$"):
            output_file(text)


@pytest.mark.parametrize("code", ["en", "en-US", "zh-Hant-TW", "yue"])
def test_a_language(code: str) -> None:
    assert language(code) == code


@pytest.mark.parametrize("code", ["", "English", "de_DE", "e", "en-"])
def test_no_language(code: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="BCP-47") as refused:
        language(code)
    assert repr(code) in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["localhost:50051", "[::1]:1", "dns:///host:1", "dns:host", "ipv4:1.2.3.4:5", "unix:/tmp/socket", "xds:///name"],
)
def test_an_address(address: str) -> None:
    assert server_address(address) == address


@pytest.mark.parametrize("address", ["", "localhost", "http://localhost:1", "localhost:x", ":1"])
def test_no_address(address: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be") as refused:
        server_address(address)
    assert repr(address) in str(refused.value)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("16", 16), ("007", 7), ("4294967295", 2**32 - 1)])
def test_a_count(text: str, number: int) -> None:
    assert count(text) == number


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "many", "²", "9" * 5_000])
def test_no_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number of at least 1, is ") as refused:
        count(text)
    assert repr(text) in str(refused.value)


def test_a_whole_number_may_be_0() -> None:
    assert (whole("0"), whole("4294967295")) == (0, 2**32 - 1)
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number of at least 0, is '-1'"):
        whole("-1")


@pytest.mark.parametrize("read", [count, whole])
def test_a_number_that_no_message_can_hold(read: Callable[[str], int]) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be at most 4294967295, is '4294967296'"):
        read("4294967296")


def test_any_number() -> None:
    assert (number("-1.5"), number("2")) == (-1.5, 2.0)
    with pytest.raises(argparse.ArgumentTypeError, match="must be a number, is 'x'"):
        number("x")
