"""What is written down of each call that has ended: a line in the log, and where there is a tracer, its spans."""

import time
from collections.abc import Iterable
from typing import Literal, Protocol

import grpc
import structlog

from service.telemetry import access_log_line
from service.telemetry.call_stats import CallStats
from service.telemetry.logs import Log

LogRequests = Literal["all", "errors", "none"]
Metadata = Iterable[tuple[str, str | bytes]]

_log = structlog.get_logger()


class Tracer(Protocol):
    """What makes spans of a record."""

    def trace(self, record: CallStats, metadata: Metadata) -> str:
        """Make the spans of a call that has ended; gives the id under which they are found, "" if they are not kept."""


class AccessLog:
    """Told of each call at its end; lives on the event loop. No call fails because it cannot be written down."""

    def __init__(self, log: Log | None = None, which: LogRequests = "none", tracer: Tracer | None = None) -> None:
        """Make a log of calls.

        Args:
            log: where the lines go.
            which: of the calls get a line: all, those that did not end with OK, none.
            tracer: makes the spans; None: there are none.
        """
        self._log = log
        self._which = which
        self._tracer = tracer

    def enter(self, record: CallStats, metadata: Metadata = ()) -> None:
        """Write down a call that has ended.

        Args:
            metadata: that came with it, where the context of a trace may be.
        """
        try:
            if self._tracer is not None:
                record.trace_id = self._tracer.trace(record, metadata)
            is_asked_for = self._which == "all" or (self._which == "errors" and record.code is not grpc.StatusCode.OK)
            if is_asked_for and self._log is not None:
                line = access_log_line.as_json if self._log.as_json else access_log_line.for_people
                self._log.write(f"{line(record, time.time())}\n")
        except Exception as error:
            _log.error("a call was not written down", error=type(error).__name__)
