import argparse
from pathlib import Path

import pytest

from dragoman import access
from dragoman.access import API_KEY_VARIABLE, Access
from tests.certificates import Authority, Files


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


@pytest.fixture
def files(tmp_path: Path) -> Files:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    files.client_ca.write_bytes(authority.pem)
    return files


@pytest.mark.parametrize("broken", ["certificate", "key"])
@pytest.mark.parametrize("content", [None, b"", b"\xff", b"-----BEGIN CERTIFICATE-----\n", "of another"])
def test_a_certificate_or_key_that_is_none_is_an_error_that_names_it(
    files: Files, broken: str, content: object
) -> None:
    path: Path = getattr(files, broken)
    if content is None:
        path.unlink()
    else:
        other = Authority().issue()[broken == "key"]
        path.write_bytes(content if isinstance(content, bytes) else other)
    with pytest.raises(OSError, match=path.name) as caught:
        Access(tls_ca=files.client_ca, tls_cert=files.certificate, tls_key=files.key).credentials()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--tls-ca=a", "--tls-cert=c"), "argument --tls-cert: needs --tls-key"),
        (("--tls-ca=a", "--tls-key=k"), "argument --tls-key: needs --tls-cert"),
        (("--tls-cert=c", "--tls-key=k"), "argument --tls-cert: needs --tls-ca"),
    ],
)
def test_a_certificate_comes_with_its_key_and_over_tls(flags: tuple[str, ...], said: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        read(*flags)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
