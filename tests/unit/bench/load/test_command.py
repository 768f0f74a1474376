import asyncio
import io
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import bench.load
from bench.load import grpc_calls, progress
from bench.load.calls import NoServerError
from bench.load.command import main
from bench.load.loops import OpenLoop
from bench.load.prepare import LoadSettings
from bench.load.run import run_load
from dragoman import cli, errors
from dragoman.v1 import translation_pb2

TEXTS = ["One two three.", "Four.", "Five six."]
PATIENCE_S = 60


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(TEXTS))
    return str(path)


async def test_closed_loop_counts_what_the_server_answered(server: Any) -> None:
    settings = LoadSettings(server.address, concurrency=2, requests=6, texts_per_request=3)
    report = await run_load(settings, TEXTS)
    assert (report["completed"], report["failed"], report["unfinished"]) == (6, 0, 0)
    assert report["total_sentences"] == 18
    assert report["total_input_tokens"] == 6 * 6
    assert report["total_output_tokens"] == 6 * 9
    assert report["mode"] == "closed"
    assert report["offered_rate"] is None
    assert report["max_concurrent_requests"] == 2
    assert [model["name"] for model in report["models"]] == ["en-de", "en-fr"]


async def test_texts_are_sent_in_turn_over_several_connections(server: Any) -> None:
    await run_load(LoadSettings(server.address, concurrency=8, requests=32), TEXTS)
    sent = [request.contents[0] for request in server.requests]
    assert sorted(sent) == sorted((TEXTS * 11)[:32])
    assert len(server.connections) == 4


@pytest.mark.parametrize(
    ("chosen", "model"),
    [({}, "en-de"), ({"model": "en-fr"}, "en-fr"), ({"source_language": "en", "target_language": "fr"}, "")],
)
async def test_request_names_what_was_chosen_or_the_first_model(
    server: Any, chosen: dict[str, str], model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=1, **chosen), TEXTS)
    assert report["measured"] == ("en-fr (en to fr)" if chosen else "en-de (en to de)")
    request = server.requests[0]
    assert request.model == model
    assert request.source_language_code == chosen.get("source_language", "")
    assert request.target_language_code == chosen.get("target_language", "")
    told = "the server has en-de, en-fr: en-de gets the load; --model names another\n"
    assert capsys.readouterr().err.startswith(told) is (not chosen)


async def test_open_loop_charges_a_stall_of_the_server_with_all_who_waited(server: Any) -> None:
    server.on_request = lambda number: time.sleep(0.6) if number == 1 else None
    report = await run_load(LoadSettings(server.address, rate=200, duration_s=0.3), TEXTS)
    assert report["completed"] > 30
    # Whoever was due in these 0.3 s is answered after the stall: a closed loop would see one slow request.
    assert report["median_e2el_ms"] >= 300
    assert report["max_e2el_ms"] >= 600


async def test_open_loop_charges_its_own_lateness_too(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start = OpenLoop.run

    async def start_and_stall(self: OpenLoop, *arguments: Any) -> None:
        asyncio.get_running_loop().call_soon(time.sleep, 0.5)
        await start(self, *arguments)

    monkeypatch.setattr(OpenLoop, "run", start_and_stall)
    report = await run_load(LoadSettings(server.address, rate=200, duration_s=0.3), TEXTS)
    assert report["late_sends"] > 0
    assert report["max_send_delay_ms"] > 10
    assert report["max_e2el_ms"] >= report["max_send_delay_ms"]
    assert report["offered_rate"] == pytest.approx(report["num_requests"] / 0.3)


async def test_errors_are_reported_by_code_and_reason_and_the_rest_succeeds(server: Any) -> None:
    def refuse_every_third(number: int) -> None:
        if number % 3 == 0:
            raise errors.QueueFullError("the queue is full")

    server.on_request = refuse_every_third
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=9), TEXTS)
    assert (report["completed"], report["rejected"], report["failed"]) == (6, 3, 0)
    assert report["errors_by_code"] == {"RESOURCE_EXHAUSTED": 3}
    assert report["errors"] == [
        {
            "code": "RESOURCE_EXHAUSTED",
            "reason": "QUEUE_FULL",
            "message": "the queue is full",
            "outcome": "rejected",
            "count": 3,
        }
    ]


async def test_request_that_takes_too_long_fails_with_deadline_exceeded(server: Any) -> None:
    over = threading.Event()
    server.on_request = lambda number: over.wait(PATIENCE_S)
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=1, timeout_s=0.1), TEXTS)
    over.set()
    assert report["errors_by_code"] == {"DEADLINE_EXCEEDED": 1}


async def test_warm_up_is_not_counted(server: Any) -> None:
    settings = LoadSettings(server.address, concurrency=1, requests=5, warmup_s=1.0)
    server.on_request = lambda number: time.sleep(settings.warmup_s) if number == 1 else None
    report = await run_load(settings, TEXTS)
    assert report["warmup_requests"] >= 1
    assert report["completed"] == 5
    assert len(server.requests) == 5 + report["warmup_requests"]


async def test_nobody_at_the_address_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_calls, "CONNECT_TIMEOUT_S", 0.2)
    with pytest.raises(NoServerError, match=r"no server answers at 127.0.0.1:1$"):
        await run_load(LoadSettings("127.0.0.1:1", concurrency=1, requests=1), TEXTS)


def test_command_prints_the_report_and_writes_it_with_all_settings(
    server: Any, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    arguments = ["--address", server.address, "--data", data, "--rate", "100", "--duration", "0.2"]
    assert main([*arguments, "--seed", "3", "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["settings"]["rate"] == 100
    assert report["settings"]["seed"] == 3
    assert report["settings"]["data"] == data
    assert report["num_texts"] == 3
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", report["date"])
    printed = capsys.readouterr().out
    assert re.search(r"^model: +en-de \(en to de\)$", printed, re.MULTILINE)
    assert re.search(r"^latency p99: +\d+\.\d ms$", printed, re.MULTILINE)
    assert re.search(rf"^requests: +{report['completed']} answered$", printed, re.MULTILINE)
    assert sorted(os.listdir(tmp_path)) == ["data.txt", "out.json"]


def test_a_load_that_the_server_would_refuse_ends_before_it_begins(
    server: Any, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--address", server.address, "--data", data, "--model", "nope", "--rate", "5", "--duration", "60"]
    assert cli.main(["load-test", *arguments]) == 2
    why = f"the server at {server.address} says: no model 'nope'; there are: en-de, en-fr"
    assert capsys.readouterr() == ("", f"dragoman load-test: {why}\n")
    assert server.requests == []


def test_html_without_its_extra_fails_before_the_load(
    server: Any,
    data: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package, name in ((bench.load, "page"), (bench, "plotting")):
        # As if it were not installed, and nobody had imported it.
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}", raising=False)
        monkeypatch.delattr(package, name, raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "1"]
    assert cli.main(["load-test", *arguments, "--html", str(tmp_path / "page.html")]) == 2
    assert 'dragoman load-test needs the extra "bench"' in capsys.readouterr().err
    assert server.requests == []


def test_command_exits_1_when_no_request_was_answered(
    server: Any, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(number: int) -> None:
        raise errors.DrainingError("the server is stopping")

    server.on_request = refuse
    assert main(["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "2"]) == 1
    assert "2 UNAVAILABLE DRAINING, the first: the server is stopping" in capsys.readouterr().out


def test_command_exits_1_in_one_line_when_there_is_no_server(
    data: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_calls, "CONNECT_TIMEOUT_S", 0.2)
    assert main(["--address", "127.0.0.1:1", "--data", data, "--concurrency", "1", "--requests", "1"]) == 1
    assert capsys.readouterr().err == "dragoman load-test: no server answers at 127.0.0.1:1\n"


def test_ctrl_c_reports_what_was_measured_so_far(
    server: Any, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(number: int) -> None:
        if number == 10:
            os.kill(os.getpid(), signal.SIGINT)
            over.wait(PATIENCE_S)

    over = threading.Event()
    server.on_request = interrupt
    out = tmp_path / "out.json"
    arguments = ["--address", server.address, "--data", data, "--concurrency", "2", "--duration", "60"]
    # A shell makes what it starts in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main([*arguments, "--json", str(out)]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    over.set()
    report = json.loads(out.read_text())
    assert report["interrupted"]
    # The ninth answer may be on its way when the signal comes.
    assert 1 <= report["completed"] <= 9
    assert report["unfinished"] >= 1
    assert ", interrupted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of the arguments --rate --concurrency --ramp is required"),
        (["--rate", "1", "--concurrency", "1", "--duration", "1"], "not allowed with"),
        (["--concurrency", "1"], "one of the arguments --duration --requests is required"),
        (["--rate", "1", "--requests", "1"], "--requests: not allowed with argument --rate"),
        (["--rate", "0", "--duration", "1"], "--rate: must be more than 0, not 0"),
        (["--rate", "nan", "--duration", "1"], "--rate: 'nan' is not a number"),
        (["--rate", "1e7", "--duration", "2"], "--rate: a load must be at most 10,000,000 requests, is 20,000,000"),
        (["--concurrency", "0", "--duration", "1"], "--concurrency: must be at least 1, not 0"),
        (["--concurrency", "2.5", "--duration", "1"], "'2.5' is not a whole number"),
        (["--concurrency", "1", "--duration", "1", "--warmup", "-1"], "--warmup: must be at least 0"),
        (["--rate", "1", "--duration", "1", "--json", "/no/such/folder/x"], "cannot write a file"),
        (["--rate", "1", "--duration", "1", "--html", "/no/such/folder/x"], "cannot write a file"),
        (["--ramp", "1", "--requests", "1"], "--requests: not allowed with argument --ramp"),
        (["--ramp", "1", "--duration", "1", "--verify"], "--verify: not allowed with argument --ramp"),
        (["--rate", "1", "--duration", "1", "--slo", "speed=1"], "'speed=1' is not NAME=VALUE with one of mean_ms"),
        (["--rate", "1", "--duration", "1", "--slo", "rate=1"], "--slo: rate is a measure of --ramp"),
        (["--rate", "1", "--duration", "1", "--address", "localhost"], "--address: must be host:port"),
        (["--rate", "1", "--duration", "1", "--address", "http://x:1"], "must be host:port, without http://"),
        (["--ramp", "5", "--duration", "1"], "at least 10 requests, --ramp 5 for --duration 1 is 5"),
        (["--ramp", "10", "--duration", "1", "--slo", "p95_ms=1"], "--slo: p95_ms is a measure of one rate"),
        (["--rate", "1", "--duration", "1", "--slo", "first_text_p95_ms=1"], "first_text_p95_ms needs --stream"),
        (["--rate", "1", "--duration", "1", "--bulk-share", "1.5"], "--bulk-share: must be from 0 to 1, not 1.5"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_2(
    data: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--data", data, *arguments])
    assert exit_info.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


async def test_requests_of_both_priorities_are_reported_apart(server: Any) -> None:
    def refuse_bulk(number: int) -> None:
        if server.requests[number - 1].priority == translation_pb2.PRIORITY_BULK:
            raise errors.QueueFullError("the queue is full")

    server.on_request = refuse_bulk
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=40, bulk_share=0.5), TEXTS)
    parts = report["by_priority"]
    assert parts["bulk"]["rejected"] == report["rejected"] == parts["bulk"]["num_requests"]
    assert 5 < parts["bulk"]["num_requests"] < 35
    assert (parts["interactive"]["completed"], parts["interactive"]["rejected"]) == (report["completed"], 0)


async def test_a_stream_is_timed_piece_by_piece_and_counted_as_one_answer(server: Any) -> None:
    settings = LoadSettings(server.address, concurrency=1, requests=6, texts_per_request=3, stream=True)
    report = await run_load(settings, TEXTS)
    assert (report["completed"], report["total_sentences"], report["total_input_tokens"]) == (6, 18, 36)
    assert 0 < report["p50_ttft_ms"] <= report["max_e2el_ms"]
    assert report["mean_itl_ms"] is not None


async def test_a_stream_that_breaks_off_is_no_answer(server: Any) -> None:
    def refuse(number: int) -> None:
        raise errors.QueueFullError("the queue is full")

    server.on_request = refuse
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=2, stream=True), TEXTS)
    assert (report["completed"], report["rejected"]) == (0, 2)
    assert "p50_ttft_ms" not in report


async def test_an_answer_that_lacks_a_translation_is_none(server: Any) -> None:
    honest = server.translated

    def fail_on_four(text: str) -> translation_pb2.TranslatedText:
        if text == "Four.":
            return translation_pb2.TranslatedText(text_error=errors.to_text_error(errors.InternalError("broken")))
        return honest(text)

    server.translated = fail_on_four
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=6), TEXTS)
    assert (report["completed"], report["failed"]) == (4, 2)
    assert report["errors"][0]["reason"] == "INTERNAL"


async def test_some_texts_are_asked_for_again_and_again(server: Any) -> None:
    texts = [f"Text {number}." for number in range(200)]
    await run_load(LoadSettings(server.address, concurrency=1, requests=50, repeat_share=1.0), texts)
    sent = [request.contents[0] for request in server.requests]
    assert max(map(sent.count, sent)) > 3


async def test_only_so_many_texts_are_compared(server: Any) -> None:
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=4, verify_texts=2), TEXTS)
    assert report["verify_texts"] == 2
    assert (report["verify_compared"], report["verify_different"]) == (4, 0)


@pytest.mark.parametrize(
    ("targets", "code", "missed"),
    [
        (["p95_ms=60000", "error_rate=0.5"], 0, []),
        (["p95_ms=60000", "error_rate=0.1"], 1, ["missed: error_rate 0.333333, at most 0.1"]),
        (["goodput=1e9", "max_ms=0"], 1, ["missed: goodput ", "missed: max_ms "]),
    ],
)
def test_command_exits_1_with_a_line_for_each_missed_target(
    server: Any, data: str, capsys: pytest.CaptureFixture[str], targets: list[str], code: int, missed: list[str]
) -> None:
    def refuse_every_third(number: int) -> None:
        if number % 3 == 0:
            raise errors.QueueFullError("the queue is full")

    server.on_request = refuse_every_third
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "9"]
    assert main([*arguments, *(part for target in targets for part in ("--slo", target))]) == code
    said = [line for line in capsys.readouterr().err.splitlines() if "load-test" in line]
    assert len(said) == len(missed)
    assert all(line.startswith(f"dragoman load-test: {start}") for line, start in zip(said, missed, strict=True))


async def test_goodput_counts_the_answers_in_time(server: Any) -> None:
    server.on_request = lambda number: time.sleep(1.0) if number == 1 else None
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=5, goodput_ms=999.0), TEXTS)
    assert report["completed"] == 5
    assert 0 < report["request_goodput"] < report["request_throughput"]


def test_no_metrics_at_the_address_is_one_line_and_exit_1(
    server: Any, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "1"]
    assert main([*arguments, "--metrics-address", "127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("dragoman load-test: no metrics at http://127.0.0.1:1/metrics")
    assert error.count("\n") == 1


def test_unreadable_data_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--data", str(tmp_path / "none.tsv"), "--concurrency", "1", "--requests", "1"])
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_broken_lines_are_named(server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("One.\tEins.\nbroken\nTwo.\tZwei.\n" + "broken\n" * 6)
    main(["--address", server.address, "--data", str(path), "--concurrency", "1", "--requests", "1"])
    assert "7 broken lines are left out: 2, 4, 5, 6, 7, ...\n" in capsys.readouterr().err


class Screen(io.StringIO):
    """What takes the place of stderr; tells when something is shown of the answers."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.shown = threading.Event()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        if "answered" in text:
            self.shown.set()
        return super().write(text)


@pytest.mark.parametrize("end", [["--duration", "0.3"], ["--requests", "5"]])
@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_one_line_on_a_terminal_and_lines_elsewhere(
    server: Any, data: str, monkeypatch: pytest.MonkeyPatch, end: list[str], terminal: bool
) -> None:
    screen = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_INTERVAL_S", 0.02)
    # The load ends by the clock, but not before something was shown.
    server.on_request = lambda number: screen.shown.wait(PATIENCE_S)
    main(["--address", server.address, "--data", data, "--model", "en-de", "--concurrency", "1", *end])
    line = r"\d+ s: \d+ answered, \d+\.\d/s, \d in flight, 0 not answered"
    assert re.match(rf"\r{line}\033\[K" if terminal else rf"{line}\n", screen.getvalue())
    assert screen.getvalue().endswith("\r\033[K" if terminal else "answered\n")
