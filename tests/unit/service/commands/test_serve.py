"""The command line of the server, up to the moment at which it would start."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli import main
from plugins.library.names import Name
from service.commands.serve import build_parser
from service.settings import GROUPS, Settings
from tests.server_process import BUNDLE
from tests.shelved import shelve


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"DRAGOMAN_{name.upper()}", raising=False)


def test_every_setting_is_a_flag_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [_flag(name, field.default) for name, field in Settings.model_fields.items()]
    assert main(["serve", *flags, "--print-config"]) == 0
    printed = json.loads(capsys.readouterr().out)
    slots_bytes = printed.pop("kv_cache")["models"]["en-de"]["bytes"]
    assert 0 < slots_bytes < printed.pop("model_memory")["models"]["en-de"]["bytes"]
    assert printed == json.loads(Settings.model_construct().model_dump_json())


def _flag(name: str, value: object) -> str:
    flag, value = name.replace("_", "-"), ",".join(value) if isinstance(value, tuple) else value
    return f"--{'' if value else 'no-'}{flag}" if isinstance(value, bool) else f"--{flag}={value}"


def test_names_of_models_stand_in_place_of_the_flag(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for pair in ("de-en", "en-fr"):
        source, target = pair.split("-")
        shelve(tmp_path / "dragoman", Name("firefox", pair), source=source, target=target)
    assert main(["serve", "firefox:de-en", "de-fr", str(BUNDLE), "nobody/nothing", "--print-config"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed["kv_cache"]["models"]) == ["firefox-de-en", "firefox-en-fr", "en-de"]
    assert (len(printed["models"]), printed["models"][2]) == (3, str(BUNDLE))
    assert printed["pivot_language"] == "en"
    assert main(["serve", "firefox:de-fr", "--pivot-language=de", "--print-config"]) == 2
    said = capsys.readouterr().err
    assert "DRAGOMAN_PIVOT_LANGUAGE (--pivot-language): must be left out or en, over which these models" in said
    assert said.endswith("given: 'de'\n")


def test_what_cannot_be_served_is_printed_and_fails_as_the_server_would(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["serve", f"--models={tmp_path / 'none'}", "--print-config"]) == 2
    printed, said = capsys.readouterr()
    assert json.loads(printed)["kv_cache"]["models"] == {}
    assert said.startswith(f"dragoman serve: {tmp_path / 'none'}: no such folder; a model is")


def test_names_are_not_given_twice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "a/b", "--models=c/d"])
    said = "argument --models: not with NAME, given: a/b; several are --models A,B or NAME NAME"
    assert capsys.readouterr().err == f"dragoman serve: {said}\n"


def test_a_list_is_given_in_one_flag_or_in_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--print-config", "--http-origins=https://a,https://b", "--http-origins=https://c"]) == 0
    assert json.loads(capsys.readouterr().out)["http_origins"] == ["https://a", "https://b", "https://c"]


def test_where_clients_find_a_server_is_no_setting_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVER", "127.0.0.1:1")
    assert main(["serve", "--print-config"]) == 0


def test_a_switch_is_turned_off_by_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-coalesce", "--print-config"]) == 0
    assert json.loads(capsys.readouterr().out)["coalesce"] is False


def test_help_has_groups_and_lists_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    text = capsys.readouterr().out
    assert GROUPS.keys() <= Settings.model_fields.keys()
    assert all(f"\n{title}:\n" in text for title in GROUPS.values())
    assert all(choices in text for choices in ("--device {cpu,cuda}", "--log-requests {all,errors,none}"))
    assert "--coalesce, --no-coalesce" in text


@pytest.mark.parametrize("host", ["*", "a..b", "a" * 64])
@pytest.mark.parametrize("flag", ["--address", "--metrics-address"])
def test_an_address_that_no_host_can_have_is_one_line(flag: str, host: str, capsys) -> None:
    assert main(["serve", flag, f"{host}:50051"]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "must be host:port" in captured.err


@pytest.mark.parametrize("arguments", [["--slots", "0"], ["--device", "tpu"], ["--no-such-flag"], ["surplus"]])
def test_a_bad_command_line_gives_one_line_and_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    try:
        code = main(["serve", *arguments])
    except SystemExit as left:
        code = left.code
    assert code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dragoman serve: ")
    assert captured.err.count("\n") == 1


def test_a_flag_that_is_not_given_leaves_the_variable_in_force() -> None:
    assert vars(build_parser().parse_args(["--slots", "7"])) == {"slots": "7", "names": [], "print_config": False}


@pytest.fixture
def _few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (63, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_few_descriptors")
def test_too_few_descriptors_are_told_before_anything_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve"]) == 2
    line = capsys.readouterr().err
    assert line == "dragoman serve: at least 64 file descriptors are needed, the limit is 63 (ulimit -n)\n"
