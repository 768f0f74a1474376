import json
import logging
import os
import pty
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
import structlog
from grpc._cython import cygrpc

from service.telemetry import logs
from service.telemetry.metrics import Metrics


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(capfd: pytest.CaptureFixture[str]) -> list[str]:
    captured = capfd.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize("log_format", ["json", "auto"])
def test_json_lines_of_ours_and_of_libraries(capfd: pytest.CaptureFixture[str], log_format: logs.LogFormat) -> None:
    with logs.running(log_format, Metrics()) as log:
        assert log.as_json
        structlog.get_logger().info("serving", models=["en-de"])
        logging.getLogger("grpc").warning("from a library: %d", 7)
        log.write("{}\n")
    first, second, third = map(json.loads, lines(capfd))
    assert (first["event"], first["models"], first["level"]) == ("serving", ["en-de"], "info")
    assert (second["event"], second["level"]) == ("from a library: 7", "warning")
    assert first["timestamp"].endswith("Z")
    assert third == {}


def test_an_exception_of_a_library_is_one_json_line(capfd: pytest.CaptureFixture[str]) -> None:
    with logs.running("json", Metrics()):
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("asyncio").exception("failed")
    [line] = lines(capfd)
    assert "ValueError: broken" in json.loads(line)["exception"]


def test_console_lines_are_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    with logs.running("console", Metrics()) as log:
        assert not log.as_json
        structlog.get_logger().info("listening on 127.0.0.1:50051")
    [line] = lines(capfd)
    assert "listening on 127.0.0.1:50051" in line
    assert not line.startswith("{")


@pytest.mark.parametrize("log_format", ["auto", "json"])
def test_a_terminal_gets_lines_for_people_unless_told_otherwise(log_format: logs.LogFormat) -> None:
    ours, theirs = pty.openpty()
    kept = os.dup(2)
    os.dup2(theirs, 2)
    try:
        with logs.running(log_format, Metrics()) as log:
            assert log.as_json == (log_format == "json")
            structlog.get_logger().info("serving")
        assert (os.read(ours, 1000)[:1] == b"{") == (log_format == "json")
    finally:
        os.dup2(kept, 2)
        for descriptor in (kept, ours, theirs):
            os.close(descriptor)


def test_a_line_that_cannot_be_made_is_counted_and_hurts_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics()
    with logs.running("json", metrics):
        logging.getLogger("library").warning("%d", "no number")
        logging.getLogger("library").warning("after")
    assert [json.loads(line)["event"] for line in lines(capfd)] == ["after"]
    assert metrics.total("log_lines_dropped_total") == 1


def test_nothing_is_written_after_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    with logs.running("json", Metrics()):
        inside = root.handlers[:]
    assert not set(inside) & set(root.handlers)


def test_what_any_client_can_cause_at_will_gets_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    grpcio = logging.getLogger("grpc._cython.cygrpc")
    with logs.running("json", Metrics()):
        try:
            raise cygrpc.ExecuteBatchError("the client has left")
        except cygrpc.ExecuteBatchError:
            grpcio.exception("ExecuteBatchError raised in core by servicer method [/x.Y/Z]")
        try:
            b"/\xff".decode()
        except UnicodeDecodeError:
            grpcio.exception("Unexpected [UnicodeDecodeError] raised by servicer method [/\xff]")
        grpcio.exception("Invalid encoding on %s", b"Bearer key\xff")
        grpcio.error("something else")
    [line] = lines(capfd)
    assert json.loads(line)["event"] == "something else"


def test_a_process_that_forks_logs_without_a_thread(capfd: pytest.CaptureFixture[str]) -> None:
    threads = threading.active_count()
    logs.configure_without_thread("json")
    structlog.get_logger().info("a process has started", pid=7)
    assert threading.active_count() == threads
    [line] = lines(capfd)
    assert (json.loads(line)["event"], json.loads(line)["pid"]) == ("a process has started", 7)


def test_a_log_that_nobody_reads_does_not_stop_a_process_that_forks() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, b"x" * 1024):
            pass
    os.set_blocking(writing, True)
    kept = os.dup(2)
    os.dup2(writing, 2)
    try:
        logs.configure_without_thread("json")
        structlog.get_logger().info("a process has started")  # returns
    finally:
        os.dup2(kept, 2)
        for descriptor in (kept, reading, writing):
            os.close(descriptor)
