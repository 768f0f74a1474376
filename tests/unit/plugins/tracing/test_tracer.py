"""Spans of records, as an exporter in memory gets them."""

import time
from collections.abc import Iterator

import grpc
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from plugins.tracing.tracer import CallTracer
from service.telemetry.access_log import CallStats, Interval

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


class Traced:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = CallTracer(self._exporter)

    def spans(self) -> dict[str, ReadableSpan]:
        self.tracer.close()
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def traced() -> Iterator[Traced]:
    traced = Traced()
    yield traced
    traced.tracer.close()


def record(**fields) -> CallStats:
    now_s = time.monotonic()
    stages = {
        "queue": Interval(now_s - 9, now_s - 8),
        "encode": Interval(now_s - 8, now_s - 6),
        "decode": Interval(now_s - 6, now_s - 1),
    }
    known = {"began_s": now_s - 10, "duration_s": 10.0, "model": "en-de", "request_id": "id-7"}
    return CallStats("TranslateText", **(stages | known | fields))


def seconds(span: ReadableSpan) -> float:
    return (span.end_time - span.start_time) / 1e9


def test_a_call_is_a_server_span_with_a_child_a_stage(traced: Traced) -> None:
    trace_id = traced.tracer.trace(record(texts=2, failed_texts=1, segments=3, source_tokens=20), ())
    spans = traced.spans()
    assert set(spans) == {"dragoman.v1.Translation/TranslateText", "queue", "encode", "decode"}
    call = spans["dragoman.v1.Translation/TranslateText"]
    assert call.kind is SpanKind.SERVER
    assert call.parent is None
    assert call.resource.attributes["service.name"] == "dragoman"
    assert f"{call.context.trace_id:032x}" == trace_id
    assert call.attributes == {
        "rpc.system.name": "grpc",
        "rpc.method": "dragoman.v1.Translation/TranslateText",
        "rpc.response.status_code": "OK",
        "dragoman.request_id": "id-7",
        "dragoman.model": "en-de",
        "dragoman.texts": 2,
        "dragoman.texts.failed": 1,
        "dragoman.segments": 3,
        "dragoman.segments.cached": 0,
        "dragoman.segments.coalesced": 0,
        "dragoman.source_tokens": 20,
        "dragoman.target_tokens": 0,
    }
    for name, duration_s in (("queue", 1), ("encode", 2), ("decode", 5)):
        assert spans[name].parent.span_id == call.context.span_id
        assert seconds(spans[name]) == pytest.approx(duration_s)
        assert call.start_time <= spans[name].start_time <= spans[name].end_time <= call.end_time
    assert seconds(call) == pytest.approx(10)
    assert abs(call.end_time - time.time_ns()) < 3600e9


def test_the_callers_span_is_the_parent(traced: Traced) -> None:
    metadata = [("user-agent", "x"), ("traceparent", PARENT), ("tracestate", "a=b"), ("key-bin", b"\xff")]
    assert traced.tracer.trace(record(), metadata) == "0af7651916cd43dd8448eb211c80319c"
    call = traced.spans()["dragoman.v1.Translation/TranslateText"]
    assert f"{call.parent.span_id:016x}" == "b7ad6b7169203331"
    assert call.parent.is_remote
    assert call.context.trace_state.get("a") == "b"


@pytest.mark.parametrize("traceparent", ["", "nonsense", "00-0-0-01", "ff" + PARENT[2:], b"\xff\xfe"])
def test_a_bad_parent_is_none(traced: Traced, traceparent: str | bytes) -> None:
    assert traced.tracer.trace(record(), [("traceparent", traceparent)])
    assert traced.spans()["dragoman.v1.Translation/TranslateText"].parent is None


def test_what_the_caller_does_not_sample_is_not_kept(traced: Traced) -> None:
    assert traced.tracer.trace(record(), [("traceparent", UNSAMPLED)]) == ""
    assert traced.spans() == {}


def test_a_call_without_segments_has_no_stages(traced: Traced) -> None:
    refused = record(
        queue=Interval(),
        encode=Interval(),
        decode=Interval(),
        code=grpc.StatusCode.INVALID_ARGUMENT,
        reason="INVALID_REQUEST",
    )
    traced.tracer.trace(refused, ())
    [(_, call)] = traced.spans().items()
    assert call.attributes["rpc.response.status_code"] == "INVALID_ARGUMENT"
    assert call.attributes["error.type"] == "INVALID_REQUEST"
    assert call.status.status_code is StatusCode.UNSET  # the caller's fault


def test_a_failure_of_the_server_is_an_error(traced: Traced) -> None:
    traced.tracer.trace(record(code=grpc.StatusCode.INTERNAL, reason="INTERNAL"), ())
    assert traced.spans()["dragoman.v1.Translation/TranslateText"].status.status_code is StatusCode.ERROR
