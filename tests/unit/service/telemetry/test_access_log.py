import json

import grpc
import pytest
from structlog.testing import capture_logs

from dragoman.errors import QueueFullError
from service.telemetry.access_log import AccessLog, CallStats, LogRequests
from service.telemetry.logs import Log
from service.telemetry.metrics import Metrics
from service.wire import CallProtocol, Metadata

FINE, BAD = CallStats("ListModels"), CallStats("TranslateText", code=grpc.StatusCode.INTERNAL, reason="INTERNAL")


@pytest.mark.parametrize(
    ("which", "written"), [("all", ["ListModels", "TranslateText"]), ("errors", ["TranslateText"]), ("none", [])]
)
def test_the_setting_says_which_calls_get_a_line(which: LogRequests, written: list[str]) -> None:
    lines: list[str] = []
    access_log = AccessLog(Metrics(), Log(lines.append, as_json=True), which)
    for record in (FINE, BAD):
        access_log.ended(record)
    assert [json.loads(line)["method"] for line in lines] == written
    assert all(line.endswith("}\n") for line in lines)


def test_people_get_lines_for_people() -> None:
    lines: list[str] = []
    AccessLog(Metrics(), Log(lines.append, as_json=False), "all").ended(FINE)
    assert "ListModels OK in" in lines[0]


def test_a_line_names_the_trace() -> None:
    class Tracer:
        def trace(self, record: CallStats, metadata: Metadata) -> str:
            return f"{dict(metadata)['traceparent']}-{record.method}"

    lines: list[str] = []
    access_log = AccessLog(Metrics(), Log(lines.append, as_json=True), "all", Tracer())
    access_log.ended(CallStats("ListModels"), [("traceparent", "t")])
    assert json.loads(lines[0])["trace_id"] == "t-ListModels"


def test_a_call_goes_on_when_it_cannot_be_written_down() -> None:
    def fail(line: str) -> None:
        raise RuntimeError("a text")

    with capture_logs() as log:
        AccessLog(Metrics(), Log(fail, as_json=True), "all").ended(FINE)
    assert log == [{"event": "a call was not written down", "error": "RuntimeError", "log_level": "error"}]


def test_the_end_of_a_call_is_one_count_and_one_duration() -> None:
    metrics = Metrics()
    access_log = AccessLog(metrics)
    for code in (grpc.StatusCode.OK, grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
        access_log.ended(record := CallStats("TranslateText", code=code))
        assert record.duration_s >= 0
    assert metrics.total("requests_total", method="TranslateText", code="OK") == 2
    assert metrics.total("requests_total", method="TranslateText", code="CANCELLED") == 1
    assert metrics.total("request_duration_seconds_count", method="TranslateText") == 3


def test_a_refusal_is_counted_by_its_reason() -> None:
    metrics = Metrics()
    AccessLog(metrics).refused(QueueFullError("full"))
    assert metrics.total("rejected_total", reason="QUEUE_FULL") == 1


def test_a_call_that_ends_at_its_headers_has_a_line_but_no_duration() -> None:
    metrics, lines = Metrics(), list[str]()
    record = CallStats("ListModels", CallProtocol.HTTP, code=grpc.StatusCode.UNAUTHENTICATED)
    AccessLog(metrics, Log(lines.append, as_json=True), "all").ended(record, at_headers=True)
    assert metrics.total("requests_total", method="ListModels", code="UNAUTHENTICATED", protocol="http") == 1
    assert metrics.total("request_duration_seconds_count") == 0
    assert json.loads(lines[0])["code"] == "UNAUTHENTICATED"
