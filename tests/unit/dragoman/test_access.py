import argparse
from pathlib import Path

import pytest

from dragoman import access
from dragoman.access import API_KEY_VARIABLE, Access


def read(*arguments: str) -> Access:
    parser = argparse.ArgumentParser("dragoman x")
    access.add_arguments(parser)
    return access.of(parser, parser.parse_args(arguments))


def test_the_key_of_the_command_line_wins_over_that_of_the_environment(monkeypatch) -> None:
    monkeypatch.delenv(API_KEY_VARIABLE, raising=False)
    assert read().metadata == ()
    monkeypatch.setenv(API_KEY_VARIABLE, "one")
    assert read().metadata == (("authorization", "Bearer one"),)
    assert read("--api-key", "other").metadata == (("authorization", "Bearer other"),)
    monkeypatch.setenv(API_KEY_VARIABLE, "")
    assert read().metadata == ()


@pytest.mark.parametrize("key", ["a\nb", "é", "\x7f"])
def test_what_no_header_can_hold_is_one_line_that_does_not_show_it(key: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        read("--api-key", key)
    assert ended.value.code == 2
    assert key not in capsys.readouterr().err.splitlines()[-1]


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(Access("secret"))


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"])
def test_a_file_without_authorities_is_an_error_that_names_it(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OSError, match=r"ca\.crt"):
        Access(tls_ca=path).credentials()
