"""OpenTelemetry spans, made from the record of a call after its end: tracing does no work while the call runs.

The only importer of opentelemetry, which the extra `tracing` installs. The SDK's environment variables apply:
`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_EXPORTER_OTLP_*`.
"""

import os
import threading
import time
from importlib.metadata import version
from typing import Final

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.telemetry.access_log import CallStats, Interval
from service.wire import SERVICE, Metadata

_TRACE_CONTEXT: Final = ("traceparent", "tracestate")
_PATIENCE_S: Final = 2.0  # at the end, for a collector that does not answer
# Failures by the semantic conventions for gRPC: other statuses are errors of the caller.
_FAILURES: Final = (
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
)


class CallTracer:
    """Makes a server span for each call, a child of the caller's span if the call names one, with a child per stage."""

    def __init__(self, exporter: SpanExporter) -> None:
        """Start the thread that exports."""
        resource = Resource.create(
            {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "dragoman"), SERVICE_VERSION: version("dragoman")}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("dragoman")
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to(cls, endpoint: str) -> "CallTracer":
        """Make a tracer that exports by OTLP over gRPC.

        Args:
            endpoint: the collector's URL; http:// is without TLS.
        """
        return cls(OTLPSpanExporter(endpoint=endpoint, insecure=endpoint.startswith("http://")))

    def trace(self, record: CallStats, metadata: Metadata) -> str:
        """Make the spans of a finished call.

        Returns:
            The id of their trace; "" if the sampler drops the trace.
        """
        carrier = {key: str(value) for key, value in metadata if key in _TRACE_CONTEXT}
        # Added to a time of the monotonic clock, this gives nanoseconds since 1970.
        epoch_ns = time.time_ns() - time.monotonic_ns()
        span = self._tracer.start_span(
            f"{SERVICE}/{record.method}",
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER,
            start_time=_ns(record.began_s, epoch_ns),
        )
        if not span.is_recording():
            return ""
        _describe(span, record)
        for name, stage in (("queue", record.queue), ("encode", record.encode), ("decode", record.decode)):
            self._trace_stage(span, name, stage, epoch_ns)
        span.end(_ns(record.began_s + record.duration_s, epoch_ns))
        return format_trace_id(span.get_span_context().trace_id)

    def close(self) -> None:
        """Export the pending spans, as far as the collector accepts them in time; blocks."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_PATIENCE_S)

    def _trace_stage(self, parent: Span, name: str, stage: Interval, epoch_ns: int) -> None:
        if stage.end_s < stage.start_s:
            return  # no segment reached this stage
        child = self._tracer.start_span(
            name, context=set_span_in_context(parent), start_time=_ns(stage.start_s, epoch_ns)
        )
        child.end(_ns(stage.end_s, epoch_ns))


def _describe(span: Span, record: CallStats) -> None:
    span.set_attributes(
        {
            "rpc.system.name": record.protocol.value,
            "rpc.method": f"{SERVICE}/{record.method}",
            "rpc.response.status_code": record.code.name,
            "dragoman.request_id": record.request_id,
            "dragoman.model": record.model,
            "dragoman.texts": record.texts,
            "dragoman.texts.failed": record.failed_texts,
            "dragoman.segments": record.segments,
            "dragoman.segments.cached": record.cached,
            "dragoman.segments.coalesced": record.coalesced,
            "dragoman.source_tokens": record.source_tokens,
            "dragoman.target_tokens": record.target_tokens,
        }
    )
    if record.reason:
        span.set_attribute("error.type", record.reason)
    if record.code in _FAILURES:
        span.set_status(StatusCode.ERROR)


def _ns(monotonic_s: float, epoch_ns: int) -> int:
    return int(monotonic_s * 1e9) + epoch_ns
