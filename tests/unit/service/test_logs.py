import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from service import logs


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_json_lines_of_ours_and_of_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    structlog.get_logger().info("serving", models=["en-de"])
    logging.getLogger("grpc").warning("from a library: %d", 7)
    captured = capsys.readouterr()
    ours, foreign = map(json.loads, captured.err.splitlines())
    assert (ours["event"], ours["models"], ours["level"]) == ("serving", ["en-de"], "info")
    assert (foreign["event"], foreign["level"]) == ("from a library: 7", "warning")
    assert ours["timestamp"].endswith("Z")
    assert captured.out == ""


def test_an_exception_of_a_library_is_one_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json")
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("asyncio").exception("failed")
    [line] = capsys.readouterr().err.splitlines()
    assert "ValueError: broken" in json.loads(line)["exception"]


def test_console_lines_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("console")
    structlog.get_logger().info("listening on 127.0.0.1:50051")
    assert "listening on 127.0.0.1:50051" in capsys.readouterr().err
