import re
from pathlib import Path

import pytest

from service.settings import Settings, SettingsError, load


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"DRAGOMAN_{name.upper()}", raising=False)


def test_defaults_are_those_of_the_documentation() -> None:
    settings = load()
    assert settings.address == "127.0.0.1:50051"
    assert settings.metrics_address == "127.0.0.1:9464"
    assert settings.model_folders == [Path(__file__).parents[3] / "models"]
    assert settings.device == "cpu"


def test_flag_wins_over_variable_wins_over_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOTS", "7")
    monkeypatch.setenv("DRAGOMAN_DEVICE", "cuda")
    settings = load({"slots": "9"})
    assert (settings.slots, settings.device, settings.threads) == (9, "cuda", 0)


def test_an_empty_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOTS", "")
    assert load().slots == 32


def test_lists_are_texts_with_commas_between_them_in_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HTTP_TRUSTED_PROXIES", "10.0.0.0/8, ::1,")
    settings = load({"http_origins": "https://a.example,*"})
    assert settings.http_origins == ("https://a.example", "*")
    assert settings.http_trusted_proxies == ("10.0.0.0/8", "::1")
    assert settings.pinned_models == ()
    assert load({"http_origins": ("*",)}).http_origins == ("*",)


BAD_URLS = (
    "foo",
    "http://[",
    "http://",
    "https:///models.json",
    "file:///etc/hosts",
    "http://host:x/a",
    "http://host/a b",
)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("models", " ,", "must be names of models, none of them empty"),
        ("device", "tpu", "must be 'cpu' or 'cuda'"),
        ("slots", "0", "greater than or equal to 1"),
        ("slots", "many", "valid integer"),
        ("beam_size", "0", "greater than or equal to 1"),
        ("beam_size", "17", "less than or equal to 16"),
        ("threads", "-1", "greater than or equal to 0"),
        ("processes", "0", "greater than or equal to 1"),
        ("processes", "many", "must be auto, or a number of processes from 1 to 1024;"),
        ("address", "localhost", "must be host:port"),
        ("metrics_address", "localhost:65536", "port up to 65535"),
        ("drain_timeout_s", "inf", "less than or equal to 86400"),
        ("coalesce", "maybe", "must be true or false;"),
        *(("firefox_models", url, "must be http://host/path or https://host/path;") for url in BAD_URLS),
        ("otlp_endpoint", "127.0.0.1:4317", "must be http://host:port"),
        ("pivot_language", "English", "must be a BCP-47 code"),
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


@pytest.mark.parametrize("value", ["", ("",), ("en-de", "")])
def test_no_name_of_models_is_empty(value: str | tuple[str, ...]) -> None:
    why = f"DRAGOMAN_MODELS (--models): must be names of models, none of them empty; given: {value!r}"
    with pytest.raises(SettingsError, match=re.escape(why)):
        load({"models": value})


def test_all_impossible_values_are_named_at_once() -> None:
    with pytest.raises(SettingsError, match=r"DRAGOMAN_SLOTS.*; DRAGOMAN_MAX_CONTENTS"):
        load({"slots": "0", "max_contents": "0"})


def test_a_beam_has_slots_for_its_hypotheses() -> None:
    assert load({"slots": "4", "beam_size": "4"}).beam_size == 4
    with pytest.raises(SettingsError, match=r"DRAGOMAN_BEAM_SIZE \(--beam-size\): must be at most the slots, .* 4; "):
        load({"slots": "4", "beam_size": "5"})


def test_models_are_pinned_in_a_budget_of_memory_that_is_measured() -> None:
    bounded = load({"model_memory_mb": "100", "pinned_models": "en-de, de-en"})
    assert bounded.pinned_models == ("en-de", "de-en")
    with pytest.raises(
        SettingsError, match=r"\(--pinned-models\): must be left out where there is no --model-memory-mb and"
    ):
        load({"pinned_models": "en-de"})
    with pytest.raises(SettingsError, match=r"\(--device\): must be cpu where there is a --model-memory-mb"):
        load({"model_memory_mb": "100", "device": "cuda"})


@pytest.mark.parametrize(
    ("given", "name", "other"),
    [
        ({"address": "127.0.0.1:8080"}, "http-address", "address"),
        ({"http_address": "127.0.0.1:9464"}, "metrics-address", "http-address"),
        ({"address": "[::]:1", "metrics_address": "[::]:1"}, "metrics-address", "address"),
    ],
)
def test_each_port_has_an_address_of_its_own(given: dict[str, str], name: str, other: str) -> None:
    with pytest.raises(SettingsError, match=rf"\(--{name}\): must differ from --{other}; given: "):
        load(given)
    load(dict.fromkeys(("address", "http_address", "metrics_address"), "127.0.0.1:0"))


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOT", "4")
    with pytest.raises(SettingsError, match="unknown setting DRAGOMAN_SLOT; did you mean DRAGOMAN_SLOTS"):
        load()


@pytest.mark.parametrize(
    ("name", "hint"), [("DRAGOMAN_SERVR", "; did you mean DRAGOMAN_SERVER?"), ("DRAGOMAN_XYZ", "")]
)
def test_other_variables_are_known_and_only_a_near_one_is_asked_for(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(SettingsError) as caught:
        load(other_variables=["DRAGOMAN_SERVER"])
    assert str(caught.value) == f"unknown setting {name}{hint}"


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


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if name.endswith("_s")])
def test_a_duration_is_at_most_a_day(name: str) -> None:
    load({name: "86400"})
    load({name: "24h"})
    with pytest.raises(SettingsError, match="less than or equal to 86400"):
        load({name: "1e10"})


@pytest.mark.parametrize(("text", "seconds"), [("300", 300), ("90s", 90), ("5m", 300), ("1.5h", 5400), ("0.5s", 0.5)])
def test_a_duration_may_have_its_unit(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    assert load({"keep_alive_s": text}).keep_alive_s == seconds
    monkeypatch.setenv("DRAGOMAN_DRAIN_TIMEOUT_S", text)
    assert load().drain_timeout_s == seconds


@pytest.mark.parametrize("text", ["5min", "5 m", "-5m", "1h30m", "m", "5M"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(
        SettingsError, match=r"KEEP_ALIVE_S .*: must be seconds, such as 90, or 90s, 5m or 1h; given: '"
    ):
        load({"keep_alive_s": text})


def test_http_listens_on_this_machine_unless_it_is_turned_off() -> None:
    assert Settings().http_address == "127.0.0.1:8080"
    assert Settings(http_address="none").http_address == ""


def test_several_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.cores.available", lambda: 8)
    assert (load().processes, load().decoding_threads()) == (1, 8)
    assert load({"processes": "3"}).decoding_threads() == 3
    assert load({"processes": "16"}).decoding_threads() == 1
    assert load({"processes": "2", "threads": "5"}).decoding_threads() == 5
    monkeypatch.setenv("DRAGOMAN_PROCESSES", "auto")
    assert (load().processes, load().decoding_threads()) == (8, 1)


def test_several_processes_divide_the_cores_that_runs_could_share() -> None:
    assert load({"processes": "2", "run_threads": "1"}).run_threads == 1
    with pytest.raises(SettingsError, match=r"--run-threads\): must be 0 or 1 where there are several processes"):
        load({"processes": "2", "run_threads": "2"})


def test_several_processes_are_for_linux_and_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"--processes\): must be 1 where the device is a GPU"):
        load({"processes": "2", "device": "cuda"})
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SettingsError, match="must be 1: only Linux"):
        load({"processes": "2"})
    assert load().processes == 1
