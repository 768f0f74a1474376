"""`dragoman load-test` as a process against a server, as CI would use it."""

import json
import subprocess
import sys

import pytest

SENTENCES = ["The train leaves at eight.", "Where did you learn to cook?", "Good morning.", "I am tired."]
PATIENCE_S = 240.0


@pytest.fixture
def load_test(server, tmp_path):
    """Runs it on a file of sentences, with further arguments."""
    data = tmp_path / "sentences.txt"
    data.write_text("\n".join(SENTENCES))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dragoman.cli", "load-test", "--address", server.address, "--data", str(data)]
        return subprocess.run(
            [*command, *arguments], cwd=server.directory, capture_output=True, text=True, timeout=PATIENCE_S
        )

    return run


def test_a_run_with_everything_is_reported_as_text_json_and_page(server, load_test, tmp_path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    workload = ("--words", "lognormal:8:0.5", "--repeat-share", "0.3", "--bulk-share", "0.5", "--stream")
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
    assert "latency p95" in done.stdout


def test_answers_of_the_result_cache_are_told(server, load_test, tmp_path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    files = ("--metrics-address", server.metrics_address, "--json", str(out), "--html", str(page))
    # By then the server has seen each of the sentences.
    assert load_test("--concurrency", "1", "--requests", str(len(SENTENCES))).returncode == 0
    done = load_test("--concurrency", "2", "--requests", "40", *files)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["result_cache_share"] == 1.0
    assert "from the result cache:  100 %" in done.stdout
    for told in (done.stdout, page.read_text()):
        assert "100 % of the answers came from the result cache" in told
        assert "--result-cache-mb 0" in told


def test_a_missed_target_is_exit_1_with_a_line(load_test) -> None:
    done = load_test("--concurrency", "2", "--requests", "6", "--slo", "p95_ms=0.001", "--slo", "error_rate=0")
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("dragoman load-test:")]
    assert len(said) == 1
    assert "missed: p95_ms" in said[0]


def test_a_target_that_there_is_not_is_exit_2_with_a_line(load_test) -> None:
    done = load_test("--concurrency", "2", "--requests", "6", "--slo", "speed=1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
