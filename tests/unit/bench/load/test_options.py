import json
from pathlib import Path
from typing import Any

import pytest

from bench.frame import write_json
from bench.load.options import as_json, load_settings, parse
from dragoman.access import Access

LOAD = ["--data", "texts.txt", "--rate", "5", "--duration", "2"]


def settings(*more: str) -> Any:
    arguments, _ = parse([*LOAD, *more])
    return load_settings(arguments, Access())


def test_the_load_is_what_the_arguments_ask_for() -> None:
    asked = settings(*("--warmup", "1", "--stream", "--bulk-share", "0.25", "--seed", "3", "--beam-size", "4"))
    assert (asked.rate, asked.duration_s, asked.warmup_s, asked.concurrency, asked.requests) == (5, 2, 1, None, None)
    assert (asked.stream, asked.bulk_share, asked.seed) == (True, 0.25, 3)
    assert (asked.beam_size, settings().beam_size) == (4, 0)


def test_requests_go_over_grpc_unless_an_http_port_is_named() -> None:
    assert (settings().http, settings().address) == (False, "127.0.0.1:50051")
    assert (settings("--http", "[::1]:80").http, settings("--http", "[::1]:80").address) == (True, "[::1]:80")


@pytest.mark.parametrize("address", ["foo", "a b:1", "localhost:abc"])
def test_metrics_are_at_a_host_and_port(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        settings("--metrics-address", address)
    assert ended.value.code == 2
    assert "argument --metrics-address: must be host:port" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--http", "dns:///host:1"], ["--http", "host:1", "--address", "host:2"]])
def test_an_http_port_is_one_host_and_port_and_no_second_place(more: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        settings(*more)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "goodput_ms"),
    [
        ([], None),
        (["--slo", "p95_ms=80"], 80),
        (["--slo", "p50_ms=80"], None),
        (["--goodput-ms", "20", "--slo", "p95_ms=80"], 20),
    ],
)
def test_a_good_answer_is_as_fast_as_asked_or_as_the_target(more: list[str], goodput_ms: float | None) -> None:
    assert settings(*more).goodput_ms == goodput_ms


def test_of_a_ramp_a_good_answer_is_as_fast_as_its_target() -> None:
    arguments, _ = parse(["--data", "x", "--ramp", "10", "--duration", "2", "--p95-ms", "40"])
    assert load_settings(arguments, Access()).goodput_ms == 40


def test_the_report_has_all_settings_as_they_were_written_but_no_key(tmp_path: Path) -> None:
    more = ["--slo", "p95_ms=80", "--slo", "error_rate=0", "--api-key", "secret"]
    arguments, _ = parse([*LOAD, *more, "--tls-ca", str(Path(__file__))])
    write_json(tmp_path / "out.json", as_json(arguments))
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["slo"] == ["p95_ms=80", "error_rate=0"]
    assert told["data"] == "texts.txt"
    assert "secret" not in str(told)


def test_a_beam_that_no_message_can_hold_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        settings("--beam-size", "4294967296")
    assert ended.value.code == 2
    assert "--beam-size: must be at most 4294967295" in capsys.readouterr().err
