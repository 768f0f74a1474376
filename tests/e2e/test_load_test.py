"""`dragoman load-test` against a server, as CI would use it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.command import assert_one_line, run, run_as_process
from tests.server_process import ServerProcess, serving

SENTENCES = ["The train leaves at eight.", "Where did you learn to cook?", "Good morning.", "I am tired."]


@pytest.fixture
def load_command(tmp_path) -> list[str]:
    """The command on a file of sentences; it needs a place and a load."""
    data = tmp_path / "sentences.txt"
    data.write_text("\n".join(SENTENCES))
    return ["load-test", "--data", str(data)]


@pytest.fixture
def load_test(server, load_command):
    """Runs it with further arguments."""
    return lambda *arguments: run(*load_command, "--address", server.address, *arguments)


@pytest.fixture(scope="module")
def http_server(_bundle: None) -> Iterator[ServerProcess]:
    with serving("--http-address=127.0.0.1:0", "--result-cache-mb=0") as server:
        yield server


@pytest.fixture
def http_report(http_server, load_command, tmp_path):
    """Runs it over HTTP, and gives its exit code and its report."""

    def run_and_read(*arguments: str) -> tuple[int, dict[str, Any]]:
        out = tmp_path / "out.json"
        done = run(*load_command, "--http", http_server.http_address, "--json", str(out), *arguments)
        return done.returncode, json.loads(out.read_text())

    return run_and_read


def test_a_run_with_everything_is_reported_as_text_json_and_page(server, load_test, tmp_path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    workload = ("--repeat-share", "0.3", "--bulk-share", "0.5", "--stream")
    targets = ("--slo", "p95_ms=60000", "--slo", "error_rate=0", "--slo", "goodput=1")
    files = ("--metrics-address", server.metrics_address, "--json", str(out), "--html", str(page))
    done = load_test("--rate", "30", "--duration", "2", *workload, *targets, *files)
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert report["completed"] == report["num_requests"] > 20
    assert all(verdict["met"] for verdict in report["slo"])
    assert report["by_priority"].keys() == {"interactive", "bulk"}
    assert report["p50_ttft_ms"] <= report["max_e2el_ms"]
    # The server itself says that it decoded meanwhile, and of how large a memory.
    assert max(report["server"]["target_tokens_per_second"]) > 0
    assert min(report["server"]["resident_mib"]) > 10
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert html.count("<svg") >= 7
    assert "all targets met" in html
    assert b"latency p95" in done.stdout
    assert report["server_cpu_ms"] > 0
    assert b"processor time:" in done.stdout


def test_answers_of_the_result_cache_are_told(server, load_test, tmp_path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    files = ("--metrics-address", server.metrics_address, "--json", str(out), "--html", str(page))
    # By then the server has seen each of the sentences.
    assert load_test("--concurrency", "1", "--requests", str(len(SENTENCES))).returncode == 0
    done = load_test("--concurrency", "2", "--requests", "40", *files)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["result_cache_share"] == 1.0
    assert b"from the result cache:  100 %" in done.stdout
    for told in (done.stdout.decode(), page.read_text()):
        assert "100 % of the answers came from the result cache" in told
        assert "--result-cache-mb 0" in told


def test_a_missed_target_is_exit_1_with_a_line(server, load_command) -> None:
    load = ("--concurrency", "2", "--requests", "6", "--slo", "p95_ms=0.001", "--slo", "error_rate=0")
    done = run_as_process(*load_command, "--address", server.address, *load)
    assert done.returncode == 1
    said = [line for line in done.stderr.decode().splitlines() if line.startswith("dragoman load-test:")]
    assert len(said) == 1
    assert "missed: p95_ms" in said[0]


def test_a_target_that_there_is_not_is_exit_2_with_a_line(load_test) -> None:
    done = load_test("--concurrency", "2", "--requests", "6", "--slo", "speed=1")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_over_http_every_answer_is_compared_with_the_one_given_alone(http_server, http_report) -> None:
    code, report = http_report("--concurrency", "2", "--requests", "12", "--texts-per-request", "3", "--verify")
    assert code == 0
    assert (report["completed"], report["verify_compared"], report["verify_different"]) == (12, 36, 0)
    assert [model["name"] for model in report["models"]] == ["en-de"]
    assert report["total_sentences"] == 36 < report["total_input_tokens"]
    assert report["settings"]["http"] == http_server.http_address
    assert http_server.metric("requests_total", protocol="grpc") == 0


def test_over_http_translations_are_streamed_too(http_report) -> None:
    code, report = http_report("--rate", "30", "--duration", "1", "--stream", "--bulk-share", "0.5")
    assert code == 0
    assert report["completed"] == report["num_requests"] > 5
    assert report["total_output_tokens"] > report["completed"]
    assert report["p50_ttft_ms"] <= report["max_e2el_ms"]
    assert report["by_priority"].keys() == {"interactive", "bulk"}


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_over_http_errors_are_those_of_grpc(http_server, http_report, load_command, tmp_path, more) -> None:
    load = ("--concurrency", "2", "--requests", "4", "--texts-per-request", "1025", *more)
    over_grpc = tmp_path / "grpc.json"
    assert run(*load_command, "--address", http_server.address, "--json", str(over_grpc), *load).returncode == 1
    code, report = http_report(*load)
    assert code == 1
    assert report["errors"] == json.loads(over_grpc.read_text())["errors"]
    assert [(error["count"], error["reason"]) for error in report["errors"]] == [(4, "INVALID_REQUEST")]


def test_over_http_too_a_load_that_the_server_would_refuse_ends_before_it_begins(http_server, load_command) -> None:
    load = ("--rate", "5", "--duration", "60", "--model", "xx-yy")
    done = run(*load_command, "--http", http_server.http_address, *load)
    why = f"the server at {http_server.http_address} says: no model 'xx-yy'; there are: en-de"
    assert_one_line(done, why)
