"""What is counted and written down of each call at its end."""

import time
from functools import cache

from dragoman.errors import DragomanError
from service.security.callers import Metadata
from service.telemetry.access_log import AccessLog
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics


class Reports:
    """Enters each end in the metrics and in the access log; lives on the event loop.

    Args:
        metrics: of the server.
        access_log: told of each call.
    """

    def __init__(self, metrics: Metrics, access_log: AccessLog) -> None:
        # Found once, not a call: each look-up takes a lock.
        self._counts = cache(metrics.requests_total.labels)
        self._durations = cache(metrics.request_duration_seconds.labels)
        self._refusals = cache(metrics.rejected_total.labels)
        self._access_log = access_log

    def refused(self, error: DragomanError) -> None:
        """Count a call that was not let in."""
        self._refusals(error.reason).inc()

    def ended(self, record: CallStats, metadata: Metadata, *, at_headers: bool = False) -> None:
        """Enter the end of a call: one count, one duration, one line of the log.

        Args:
            at_headers: whether it was refused by these alone; its duration would say nothing, and is not entered.
        """
        record.duration_s = time.monotonic() - record.began_s
        self._counts(record.method, record.code.name, record.protocol).inc()
        self._access_log.enter(record, metadata)
        if not at_headers:
            self._durations(record.method, record.protocol).observe(record.duration_s)

    def unauthenticated(self, record: CallStats, metadata: Metadata, error: DragomanError) -> None:
        """Enter a call that ended at its headers."""
        self.refused(error)
        self.ended(record, metadata, at_headers=True)
