from typing import Any

import pytest

from dragoman.access import Access
from dragoman.answers import Model
from dragoman.arguments import Parser
from dragoman.cli import main
from dragoman.commands.model_source import add_arguments, choose, connected, detects, parse
from dragoman.errors import (
    DrainingError,
    InvalidRequestError,
    UnauthenticatedError,
    UnknownLanguagePairError,
    UnknownModelError,
)


def model(name: str, source: str, target: str) -> Model:
    numbers: dict[str, Any] = {"max_source_tokens": 1, "max_target_tokens": 1, "vocabulary_size": 1}
    languages: dict[str, Any] = {"source_languages": (source,), "target_languages": (target,), "family": ""}
    return Model(name, source, target, "int8", checkpoint_sha256="", **languages, **numbers)


MODELS = [
    model("a", "en", "de"),
    model("b", "en", "fr"),
    model("c", "en-GB", "fr"),
    model("d", "de", "en"),
    model("e", "de", "en"),
]


@pytest.mark.parametrize(
    ("name", "source", "target", "chosen"),
    [
        ("e", "", "", "e"),
        ("e", "de", "en", "e"),
        ("", "en", "de", "a"),
        ("", "", "de", "a"),
        ("", "en-GB", "fr", "c"),
        ("", "en-US", "FR", "b"),
        ("", "en", "fr", "b"),
    ],
)
def test_chosen(name: str, source: str, target: str, chosen: str) -> None:
    assert choose(MODELS, name, source, target).name == chosen


@pytest.mark.parametrize(
    ("source", "target", "named"), [("", "", "abcde"), ("en", "", "ab"), ("", "fr", "bc"), ("de", "en", "de")]
)
def test_several_are_named(source: str, target: str, named: str) -> None:
    with pytest.raises(InvalidRequestError, match="there are several models") as caught:
        choose(MODELS, "", source, target)
    assert [other.name for other in MODELS if f"{other.name} ({other.source_language} to" in str(caught.value)] == list(
        named
    )


@pytest.mark.parametrize(
    ("models", "name", "source", "target", "does"),
    [
        ("ad", "", "", "", True),
        ("ad", "a", "", "", False),
        ("ad", "", "en", "", False),
        ("ad", "", "", "de", False),
        ("a", "", "", "", False),
        ("abd", "", "", "", False),
        ("de", "", "", "", False),
        ("abd", "", "auto", "fr", True),
    ],
)
def test_the_language_of_a_text_decides_where_nothing_else_does(
    models: str, name: str, source: str, target: str, *, does: bool
) -> None:
    assert detects([other for other in MODELS if other.name in models], name, source, target) is does


def test_none() -> None:
    with pytest.raises(UnknownModelError, match="no model 'x'; there are: a, b, c, d, e"):
        choose(MODELS, "x", "", "")
    with pytest.raises(UnknownModelError, match="there are: none"):
        choose([], "", "", "")
    with pytest.raises(UnknownLanguagePairError, match=r"from any language to it; there are: a \(en to de\)"):
        choose(MODELS[:1], "", "", "it")


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ([], "there:1"),
        (["--address=here:2"], "here:2"),
        (["--models=folder"], None),
        (["--api-key=secret"], "there:1"),
    ],
)
def test_without_a_place_it_is_the_server_of_the_environment(
    arguments: list[str], address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = Parser("dragoman x")
    add_arguments(parser)
    monkeypatch.setenv("DRAGOMAN_SERVER", "there:1")
    assert parse(parser, arguments)[0].address == address


def test_an_empty_name_of_models_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser("dragoman x")
    add_arguments(parser)
    with pytest.raises(SystemExit):
        parse(parser, ["--models", ""])
    assert capsys.readouterr().err == "dragoman x: argument --models: must be a name of models, is empty\n"


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("command", [["translate", "a"], ["detect", "a"], ["score"], ["models"], ["glossaries"]])
def test_every_command_asks_the_server_of_the_environment(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVER", "127.0.0.1:1")
    assert main(command) == 2
    assert capsys.readouterr().err == f"dragoman {command[0]}: no server answers at 127.0.0.1:1\n"
    monkeypatch.setenv("DRAGOMAN_SERVER", "http://127.0.0.1")
    with pytest.raises(SystemExit):
        main(command)
    assert capsys.readouterr().err.startswith(f"dragoman {command[0]}: DRAGOMAN_SERVER: must be host:port")


def test_the_only_one_is_chosen() -> None:
    assert choose(MODELS[:1], "", "", "").name == "a"


@pytest.mark.usefixtures("short_pauses")
def test_a_wait_for_a_server_that_was_there_is_told_once_in_a_call(echo, capsys: pytest.CaptureFixture[str]) -> None:
    with connected(echo.address, Access(), 600.0) as client:
        echo.servicer.errors = [DrainingError("draining")]
        client.list_models()
        assert capsys.readouterr() == ("", "")  # a server that never answered is soon an error
        for text in ("a", "b"):
            echo.servicer.errors = [DrainingError("draining") for _ in range(2)]
            assert client.translate(text).text == text
            assert capsys.readouterr() == ("", "dragoman: draining; trying again for 600 s\n")


@pytest.mark.parametrize(
    ("key", "said", "shown"),
    [
        (
            "",
            'no API key: send "authorization: Bearer KEY", or "x-api-key: KEY"',
            "no API key: give one with --api-key KEY or DRAGOMAN_API_KEY",
        ),
        ("", "of a proxy", "of a proxy: give one with --api-key KEY or DRAGOMAN_API_KEY"),
        ("wrong", "this server does not know the API key", "this server does not know the API key"),
    ],
)
def test_a_missing_key_is_told_with_its_flag(
    key: str, said: str, shown: str, echo, capsys: pytest.CaptureFixture[str]
) -> None:
    echo.servicer.errors = [UnauthenticatedError(said)]
    assert main(["models", "--address", echo.address, "--api-key", key]) == 2
    assert capsys.readouterr().err == f"dragoman models: {shown}\n"
