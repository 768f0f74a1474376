"""The record of a call, and its end: its metrics, its line in the log, and its spans where there is a tracer."""

import math
import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from json.encoder import encode_basestring as quoted
from typing import Final, Protocol

import grpc
import structlog

from dragoman.errors import DragomanError
from service import wire
from service.segment import Origin, Segment
from service.settings import LogRequests
from service.telemetry.logs import Log
from service.telemetry.metrics import Metrics

# The line of one call is made by hand, with a template: at a thousand calls a second a general renderer takes one
# twentieth of a core. docs/observability.md says what each field means.
_OURS: Final = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS)
_LEVELS: Final = {grpc.StatusCode.OK: "info", **dict.fromkeys(_OURS, "error")}
_OTHER_LEVEL: Final = "warning"  # errors of the caller
_COUNTS: Final = ("texts", "failed_texts", "segments", "cached", "coalesced", "source_tokens", "target_tokens")
_TIMES: Final = ("queue_ms", "encode_ms", "decode_ms", "duration_ms")
_NAMES: Final = (
    "timestamp",
    "level",
    "event",
    "protocol",
    "method",
    "code",
    "reason",
    "request_id",
    "caller",
    "model",
    "trace_id",
)
_KINDS: Final = (("%s", _NAMES), ("%d", _COUNTS), ("%.3f", _TIMES))
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_JSON: Final = "{" + ", ".join(f'"{name}": {kind}' for kind, names in _KINDS for name in names) + "}"

_log = structlog.get_logger()


@dataclass(slots=True)
class Interval:
    """The time in which segments of a call were in one stage, on the clock of `time.monotonic`.

    Attributes:
        start_s: when the first segment entered the stage; infinite before that.
        end_s: when the last segment left the stage; minus infinity before that.
    """

    start_s: float = math.inf
    end_s: float = -math.inf

    def add(self, start_s: float | None, end_s: float | None) -> None:
        """Note the time of a segment in the stage; a time of None: it was not in the stage, or has not left."""
        if start_s is None or end_s is None:
            return
        if start_s < self.start_s:
            self.start_s = start_s
        if end_s > self.end_s:
            self.end_s = end_s


@dataclass(slots=True)
class CallStats:
    """One call, filled while it runs; lives on the event loop.

    Attributes:
        method: name of its method, such as "TranslateText".
        request_id: id by the caller, else a random one.
        protocol: protocol of the call.
        caller: name of the caller, see `callers`.
        model: name of its model; "" before the model is chosen.
        admitted: whether the call was admitted; else its error is a refusal.
        texts: number of its texts so far.
        failed_texts: number of texts that were answered with an error of their own.
        segments: number of submitted segments.
        cached: number of segments that had a cached result.
        coalesced: number of segments that shared the decode of an identical segment.
        source_tokens: source tokens of the segments that ended.
        target_tokens: target tokens of these segments, as far as they were decoded.
        queue: from the submission of a segment to its start on an engine thread.
        encode: from there to its encoder memory.
        decode: from there to its end, a wait for a slot counted.
        code: status with which the call ended.
        reason: reason of its error; "" where it has none.
        began_s: when the call arrived, on the clock of `time.monotonic`.
        duration_s: from there to its end.
        trace_id: id under which its spans are found; "": it has no spans.
    """

    method: str
    protocol: wire.CallProtocol = wire.CallProtocol.GRPC
    request_id: str = field(default_factory=partial(secrets.token_hex, 16))
    caller: str = ""
    model: str = ""
    admitted: bool = False
    texts: int = 0
    failed_texts: int = 0
    segments: int = 0
    cached: int = 0
    coalesced: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    queue: Interval = field(default_factory=Interval)
    encode: Interval = field(default_factory=Interval)
    decode: Interval = field(default_factory=Interval)
    code: grpc.StatusCode = grpc.StatusCode.OK
    reason: str = ""
    began_s: float = field(default_factory=time.monotonic)
    duration_s: float = 0.0
    trace_id: str = ""

    def stages_ms(self) -> list[float]:
        """Give how long the call was in the queue, in the encoder and in the decoder, in milliseconds."""
        return [max(0.0, stage.end_s - stage.start_s) * 1e3 for stage in (self.queue, self.encode, self.decode)]

    def note(self, segment: Segment) -> None:
        """Count a segment that has ended or was withdrawn; a stage that it did not leave is not counted.

        No stage of the segment counts from before its submission, though a shared decode may be older.
        """
        decode, since_s = segment.decode, segment.submitted_s or 0.0
        times_s = decode.admitted_s, decode.encoded_s, decode.finished_s
        taken_s, encoded_s, end_s = [None if time_s is None else max(time_s, since_s) for time_s in times_s]
        self.source_tokens += segment.source_tokens
        self.target_tokens += len(decode.target_ids)
        if segment.origin is not Origin.DECODED:
            self.cached += segment.origin is Origin.CACHED
            self.coalesced += segment.origin is Origin.COALESCED
        self.queue.add(segment.submitted_s, end_s if taken_s is None else taken_s)
        self.encode.add(taken_s, encoded_s)
        self.decode.add(encoded_s, end_s)


class Tracer(Protocol):
    """A maker of spans."""

    def trace(self, record: CallStats, metadata: wire.Metadata) -> str:
        """Make the spans of a call that has ended; gives the id under which they are found, "" if they are not kept."""

    def close(self) -> None:
        """Hand over the waiting spans, as far as that is possible in a short time; blocks."""


class AccessLog:
    """Enters each end of a call in the metrics and in the log; lives on the event loop.

    No call fails because it cannot be logged.
    """

    def __init__(
        self, metrics: Metrics, log: Log | None = None, which: LogRequests = "none", tracer: Tracer | None = None
    ) -> None:
        """Make a log of calls.

        Args:
            which: calls that get a line: all calls, only calls that did not end with OK, or none.
            tracer: makes the spans; None: there are none.
        """
        # Cached, not looked up at each call: each look-up takes a lock.
        self._counts = cache(metrics.requests_total.labels)
        self._durations = cache(metrics.request_duration_seconds.labels)
        self._refusals = cache(metrics.rejected_total.labels)
        self._log = log
        self._which = which
        self._tracer = tracer

    def refused(self, error: DragomanError) -> None:
        """Count a call that was not admitted."""
        self._refusals(error.reason).inc()

    def ended(self, record: CallStats, metadata: wire.Metadata = (), *, at_headers: bool = False) -> None:
        """Enter the end of a call: one count, one duration, one line of the log.

        Args:
            metadata: metadata of the call, which may hold the context of a trace.
            at_headers: whether the call was refused by its headers alone; its duration means nothing, and is left out.
        """
        record.duration_s = time.monotonic() - record.began_s
        self._counts(record.method, record.code.name, record.protocol).inc()
        if not at_headers:
            self._durations(record.method, record.protocol).observe(record.duration_s)
        try:
            if self._tracer is not None:
                record.trace_id = self._tracer.trace(record, metadata)
            is_asked_for = self._which == "all" or (self._which == "errors" and record.code is not grpc.StatusCode.OK)
            if is_asked_for and self._log is not None:
                line = as_json if self._log.as_json else for_people
                self._log.write(f"{line(record, time.time())}\n")
        except Exception as error:
            _log.error("a call was not written down", error=type(error).__name__)


def as_json(record: CallStats, now_s: float) -> str:
    """Write one JSON object.

    Args:
        now_s: seconds since 1970.
    """
    return _JSON % (
        f'"{datetime.fromtimestamp(now_s, UTC):{_TIME}}"',
        f'"{_LEVELS.get(record.code, _OTHER_LEVEL)}"',
        '"request"',
        f'"{record.protocol}"',
        f'"{record.method}"',
        f'"{record.code.name}"',
        f'"{record.reason}"',
        quoted(record.request_id),
        quoted(record.caller),
        quoted(record.model),
        f'"{record.trace_id}"',
        record.texts,
        record.failed_texts,
        record.segments,
        record.cached,
        record.coalesced,
        record.source_tokens,
        record.target_tokens,
        *record.stages_ms(),
        record.duration_s * 1e3,
    )


def for_people(record: CallStats, now_s: float) -> str:
    """Write one line, the most important first; see :func:`as_json`."""
    ending = f"{record.code.name} {record.reason}" if record.reason else record.code.name
    queue_ms, encode_ms, decode_ms = record.stages_ms()
    shared = f" ({record.cached} cached, {record.coalesced} coalesced)" if record.cached or record.coalesced else ""
    failed = f" ({record.failed_texts} failed)" if record.failed_texts else ""
    work = (
        f" {record.model}: {_counted(record.texts, 'text')}{failed}, {_counted(record.segments, 'segment')}{shared}, "
        f"{_counted(record.source_tokens, 'token')} in, {record.target_tokens} out; queue {queue_ms:.1f}, "
        f"encode {encode_ms:.1f}, decode {decode_ms:.1f} ms;"
        if record.model
        else ""
    )
    trace = f" trace {record.trace_id}" if record.trace_id else ""
    when = datetime.fromtimestamp(now_s, UTC)
    return (
        f"{when:{_TIME}} [{_LEVELS.get(record.code, _OTHER_LEVEL):7}] {record.protocol} {record.method} {ending} "
        f"in {record.duration_s * 1e3:.1f} ms;{work} {record.caller} {record.request_id}{trace}"
    )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
