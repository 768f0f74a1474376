"""Spans of a running server, as a collector on loopback gets them."""

import json
import queue
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from dragoman import Client
from dragoman.v1.translation_pb2 import TranslateTextRequest
from dragoman.v1.translation_pb2_grpc import TranslationStub

PATIENCE_S = 120.0
TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
SECRET = "Geheimnis"


class Collector(TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self._exports: queue.SimpleQueue[trace_service_pb2.ExportTraceServiceRequest] = queue.SimpleQueue()
        self.received: list[trace_service_pb2.ExportTraceServiceRequest] = []
        self._server = grpc.server(ThreadPoolExecutor(2))
        add_TraceServiceServicer_to_server(self, self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Export(self, request, context):
        self._exports.put(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def wait_for(self, count: int) -> dict[str, Span]:
        """Spans by name, as soon as there are so many."""
        while len(spans := self.spans()) < count:
            self.received.append(self._exports.get(timeout=PATIENCE_S))
        return {span.name: span for span in spans}

    def spans(self) -> list[Span]:
        return [
            span
            for export in self.received
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def stop(self) -> None:
        self._server.stop(None).wait(PATIENCE_S)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    collector = Collector()
    yield collector
    collector.stop()


def test_a_call_is_traced_from_its_caller_to_its_stages(serve, collector: Collector) -> None:
    server = serve(f"--otlp-endpoint={collector.endpoint}")
    with grpc.insecure_channel(server.address) as channel:
        request = TranslateTextRequest(contents=[f"My {SECRET} is mine."], model="en-de")
        metadata = [("traceparent", f"00-{TRACE}-{CALLER}-01"), ("x-key", SECRET)]
        TranslationStub(channel).TranslateText(request, metadata=metadata, timeout=PATIENCE_S)
    spans = collector.wait_for(4)
    call = spans.pop("dragoman.v1.Translation/TranslateText")
    assert (call.trace_id.hex(), call.parent_span_id.hex(), call.kind) == (TRACE, CALLER, Span.SPAN_KIND_SERVER)
    assert set(spans) == {"queue", "encode", "decode"}
    for span in spans.values():
        assert (span.trace_id, span.parent_span_id) == (call.trace_id, call.span_id)
        assert call.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= call.end_time_unix_nano
    assert SECRET not in str(collector.received)

    # A collector that is gone costs neither calls nor the end.
    collector.stop()
    with Client(server.address) as client:
        assert client.translate("Good morning.", model="en-de")
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0
    lines = [json.loads(line) for line in server.log if line.startswith("{")]  # gRPC's own library may say a word
    written = [line for line in lines if line["event"] == "request"]
    assert [len(line["trace_id"]) for line in written] == [32, 32]
    assert written[0]["trace_id"] == TRACE


def test_there_are_no_traces_unless_asked_for(server, client) -> None:
    client.list_models()
    while not (written := [line for line in server.log if '"method": "ListModels"' in line]):
        server.wait_for("request")
    assert json.loads(written[-1])["trace_id"] == ""
