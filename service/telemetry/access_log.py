"""The end of a call: its metrics, its line in the log, and its spans where there is a tracer."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from json.encoder import encode_basestring as quoted
from typing import Final, Literal, Protocol

import grpc
import structlog

from dragoman.errors import DragomanError
from service.telemetry.logs import Log
from service.telemetry.metrics import Metrics
from service.telemetry.stats import CallStats

LogRequests = Literal["all", "errors", "none"]
Metadata = Iterable[tuple[str, str | bytes]]

# The line of one call is made by hand, with a template: at a thousand calls a second a general renderer takes a core's
# twentieth. docs/observability.md says what each field means.
_OURS: Final = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS)
_LEVELS: Final = {grpc.StatusCode.OK: "info", **dict.fromkeys(_OURS, "error")}
_OTHER_LEVEL: Final = "warning"  # what the caller has done
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


class Tracer(Protocol):
    """A maker of spans."""

    def trace(self, record: CallStats, metadata: Metadata) -> str:
        """Make the spans of a call that has ended; gives the id under which they are found, "" if they are not kept."""


class AccessLog:
    """Enters each end of a call in the metrics and in the log; lives on the event loop.

    No call fails because it cannot be written down.
    """

    def __init__(
        self, metrics: Metrics, log: Log | None = None, which: LogRequests = "none", tracer: Tracer | None = None
    ) -> None:
        """Make a log of calls.

        Args:
            which: of the calls get a line: all, those that did not end with OK, none.
            tracer: makes the spans; None: there are none.
        """
        # Found once, not a call: each look-up takes a lock.
        self._counts = cache(metrics.requests_total.labels)
        self._durations = cache(metrics.request_duration_seconds.labels)
        self._refusals = cache(metrics.rejected_total.labels)
        self._log = log
        self._which = which
        self._tracer = tracer

    def refused(self, error: DragomanError) -> None:
        """Count a call that was not let in."""
        self._refusals(error.reason).inc()

    def ended(self, record: CallStats, metadata: Metadata = (), *, at_headers: bool = False) -> None:
        """Enter the end of a call: one count, one duration, one line of the log.

        Args:
            metadata: that came with it, where the context of a trace may be.
            at_headers: whether it was refused by these alone; its duration would say nothing, and is not entered.
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
        f" {record.model}: {record.texts} texts{failed}, {record.segments} segments{shared}, "
        f"{record.source_tokens} tokens in, {record.target_tokens} out; queue {queue_ms:.1f}, "
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
