"""The end of a call in the metrics and in the access log."""

import grpc
import pytest

from dragoman.errors import QueueFullError, UnauthenticatedError
from service.telemetry.access_log import AccessLog, Reports
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.wire import Protocol

METADATA = (("user-agent", "a test"),)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def entered() -> list[tuple[CallStats, object]]:
    return []


@pytest.fixture
def reports(metrics: Metrics, entered: list, monkeypatch: pytest.MonkeyPatch) -> Reports:
    access_log = AccessLog()
    monkeypatch.setattr(access_log, "enter", lambda record, metadata: entered.append((record, metadata)))
    return Reports(metrics, access_log)


def test_the_end_of_a_call_is_one_count_one_duration_and_one_line(reports: Reports, metrics: Metrics, entered) -> None:
    for code in (grpc.StatusCode.OK, grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
        reports.ended(CallStats("TranslateText", code=code), METADATA)
    assert metrics.total("requests_total", method="TranslateText", code="OK") == 2
    assert metrics.total("requests_total", method="TranslateText", code="CANCELLED") == 1
    assert metrics.total("request_duration_seconds_count", method="TranslateText") == 3
    assert [metadata for _, metadata in entered] == [METADATA] * 3
    assert all(record.duration_s >= 0 for record, _ in entered)


def test_a_refusal_is_counted_by_its_reason(reports: Reports, metrics: Metrics, entered) -> None:
    reports.refused(QueueFullError("full"))
    assert metrics.total("rejected_total", reason="QUEUE_FULL") == 1
    assert entered == []


def test_a_call_without_a_key_is_refused_and_has_a_line_but_no_duration(reports, metrics: Metrics, entered) -> None:
    error = UnauthenticatedError("no key")
    ended = CallStats("ListModels", Protocol.HTTP, caller="ipv4:192.0.2.7", code=error.code, reason=error.reason)
    reports.unauthenticated(ended, METADATA, error)
    assert metrics.total("rejected_total", reason="UNAUTHENTICATED") == 1
    assert metrics.total("requests_total", method="ListModels", code="UNAUTHENTICATED", protocol="http") == 1
    assert metrics.total("request_duration_seconds_count") == 0
    [(record, metadata)] = entered
    assert (record.method, record.caller, record.reason) == ("ListModels", "ipv4:192.0.2.7", "UNAUTHENTICATED")
    assert metadata == METADATA
