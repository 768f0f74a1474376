"""Functions by their names, of the client and of a server that may not be there."""

import sys

import pytest

from dragoman.exit_codes import EXIT_OK
from dragoman.loading import SERVER, load


def test_a_function_of_the_client_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, SERVER, None)
    assert load("dragoman.language:is_code")("en") is True


def test_a_function_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert load("plugins.access.command:api_key")(["alice"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("alice = ")


def test_without_the_server_its_name_is_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, SERVER, None)
    with pytest.raises(ModuleNotFoundError) as missing:
        load("plugins.access.command:api_key")
    assert missing.value.name == SERVER
