import json
from pathlib import Path

import pytest

from dragoman.cli import main
from service.settings import GROUPS, Settings, SettingsError, load


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"DRAGOMAN_{name.upper()}", raising=False)


def test_defaults_are_those_of_the_documentation() -> None:
    settings = load()
    assert settings.address == "127.0.0.1:50051"
    assert settings.metrics_address == "127.0.0.1:9464"
    assert settings.models == Path(__file__).parents[3] / "models"
    assert settings.device == "cpu"


def test_flag_wins_over_variable_wins_over_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOTS", "7")
    monkeypatch.setenv("DRAGOMAN_DEVICE", "cuda")
    settings = load({"slots": "9"})
    assert (settings.slots, settings.device, settings.threads) == (9, "cuda", 0)


def test_an_empty_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOTS", "")
    assert load().slots == 32


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("device", "tpu", "must be 'cpu' or 'cuda'"),
        ("slots", "0", "greater than or equal to 1"),
        ("slots", "many", "valid integer"),
        ("threads", "-1", "greater than or equal to 0"),
        ("address", "localhost", "must be host:port"),
        ("metrics_address", "localhost:65536", "port up to 65535"),
        ("drain_timeout_s", "inf", "finite"),
        ("otlp_endpoint", "127.0.0.1:4317", "must be http://host:port"),
        ("log_requests", "some", "must be 'all', 'errors' or 'none'"),
        ("log_format", "xml", "must be 'auto', 'console' or 'json'"),
    ],
)
def test_an_impossible_value_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str) -> None:
    monkeypatch.setenv(f"DRAGOMAN_{name.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        load()
    message = str(caught.value)
    assert "\n" not in message
    assert f"DRAGOMAN_{name.upper()}" in message
    assert f"--{name.replace('_', '-')}" in message
    assert why in message
    assert repr(value) in message


def test_all_impossible_values_are_named_at_once() -> None:
    with pytest.raises(SettingsError, match=r"DRAGOMAN_SLOTS.*; DRAGOMAN_MAX_CONTENTS"):
        load({"slots": "0", "max_contents": "0"})


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOT", "4")
    with pytest.raises(SettingsError, match="unknown setting DRAGOMAN_SLOT; did you mean DRAGOMAN_SLOTS"):
        load()


@pytest.mark.parametrize(
    "name",
    [
        "DRAGOMAN_SERVICE_HOST",
        "DRAGOMAN_SERVICE_PORT",
        "DRAGOMAN_SERVICE_PORT_GRPC",
        "DRAGOMAN_PORT",
        "DRAGOMAN_PORT_50051_TCP",
        "DRAGOMAN_PORT_50051_TCP_ADDR",
        "DRAGOMAN_METRICS_SERVICE_HOST",
    ],
)
def test_variables_of_kubernetes_are_not_settings(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "10.0.0.1")
    load()


def test_zero_threads_means_the_cores() -> None:
    assert load().decoding_threads() >= 1
    assert load({"threads": "3"}).decoding_threads() == 3


def test_one_thread_drives_a_gpu() -> None:
    assert load({"device": "cuda"}).decoding_threads() == 1
    assert load({"device": "cuda", "threads": "3"}).decoding_threads() == 3


def test_every_setting_is_a_flag_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [_flag(name, field.default) for name, field in Settings.model_fields.items()]
    assert main(["serve", *flags, "--print-config"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("kv_cache")["models"]["en-de"]["bytes"] > 0
    assert printed == json.loads(Settings.model_construct().model_dump_json())


def _flag(name: str, value: object) -> str:
    flag = name.replace("_", "-")
    return f"--{'' if value else 'no-'}{flag}" if isinstance(value, bool) else f"--{flag}={value}"


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


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name.endswith("_s")])
def test_a_duration_is_at_most_a_day(name: str) -> None:
    load({name: "86400"})
    with pytest.raises(SettingsError, match="less than or equal to 86400"):
        load({name: "1e10"})


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
