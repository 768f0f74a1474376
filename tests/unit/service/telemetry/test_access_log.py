import json

import grpc
import pytest
from structlog.testing import capture_logs

from service.telemetry.access_log import AccessLog, LogRequests, Metadata
from service.telemetry.call_stats import CallStats
from service.telemetry.logs import Log

FINE, BAD = CallStats("ListModels"), CallStats("TranslateText", code=grpc.StatusCode.INTERNAL, reason="INTERNAL")


@pytest.mark.parametrize(
    ("which", "written"), [("all", ["ListModels", "TranslateText"]), ("errors", ["TranslateText"]), ("none", [])]
)
def test_the_setting_says_which_calls_get_a_line(which: LogRequests, written: list[str]) -> None:
    lines: list[str] = []
    access_log = AccessLog(Log(lines.append, as_json=True), which)
    for record in (FINE, BAD):
        access_log.enter(record)
    assert [json.loads(line)["method"] for line in lines] == written
    assert all(line.endswith("}\n") for line in lines)


def test_people_get_lines_for_people() -> None:
    lines: list[str] = []
    AccessLog(Log(lines.append, as_json=False), "all").enter(FINE)
    assert "ListModels OK in" in lines[0]


def test_a_line_names_the_trace() -> None:
    class Tracer:
        def trace(self, record: CallStats, metadata: Metadata) -> str:
            return f"{dict(metadata)['traceparent']}-{record.method}"

    lines: list[str] = []
    AccessLog(Log(lines.append, as_json=True), "all", Tracer()).enter(CallStats("ListModels"), [("traceparent", "t")])
    assert json.loads(lines[0])["trace_id"] == "t-ListModels"


def test_a_call_goes_on_when_it_cannot_be_written_down() -> None:
    def fail(line: str) -> None:
        raise RuntimeError("a text")

    with capture_logs() as log:
        AccessLog(Log(fail, as_json=True), "all").enter(FINE)
    assert log == [{"event": "a call was not written down", "error": "RuntimeError", "log_level": "error"}]
