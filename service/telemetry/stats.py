"""What is counted of a call, for its answer, its errors and the access log; and of the segments of an engine."""

import math
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import grpc

from service.decode import Decode, FinishReason
from service.segment import Origin, Segment
from service.telemetry.metrics import ModelMetrics
from service.wire import Protocol

_WITHDRAWN: Final = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_FAILED: Final = "INTERNAL"


@dataclass(slots=True)
class Interval:
    """The time in which segments of a call were in one stage, on the clock of `time.monotonic`.

    Attributes:
        start_s: when the first came; infinite before that.
        end_s: when the last left.
    """

    start_s: float = math.inf
    end_s: float = -math.inf

    def add(self, start_s: float | None, end_s: float | None) -> None:
        """Note that a segment was in it; one with a time of None was not, or has not left."""
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
        method: its name, such as "TranslateText".
        request_id: given by the caller, else made up.
        protocol: by what it came.
        caller: who calls, see `callers`.
        model: the name of its model; "" before that was chosen.
        admitted: whether it was let in; else its error is a refusal.
        texts: how many it asked for so far.
        failed_texts: how many of them were answered with an error of their own.
        segments: how many were submitted for it.
        cached: how many of them had a result that was kept.
        coalesced: how many shared the decoding of an identical one in flight.
        source_tokens: of the texts of the segments that ended.
        target_tokens: of the same, as far as they were decoded.
        queue: from the submission of a segment to an engine thread that takes it.
        encode: from there to its encoder memory.
        decode: from there to its end, a wait for a slot counted.
        code: how it ended.
        reason: of its error; "" where it has none.
        began_s: when it arrived, on the clock of `time.monotonic`.
        duration_s: from there to its end.
        trace_id: under which its spans are found; "" without.
    """

    method: str
    protocol: Protocol = Protocol.GRPC
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
        """Count a segment that has ended or was withdrawn; a stage that it did not leave counts for nothing.

        No stage of it began before it was submitted, though its decode may have been shared and older.
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


class SegmentStats:
    """The ends of one engine's segments; for one thread at a time."""

    def __init__(self, metrics: ModelMetrics) -> None:
        self._metrics = metrics
        self._ended = {reason: metrics.segments_total[reason.name] for reason in FinishReason}
        self._failed = metrics.segments_total[_FAILED]
        self._source_tokens = self._target_tokens = 0  # of the segments that the model ended

    def enter(self, decodes: Iterable[Decode]) -> None:
        """Count segments that have ended."""
        for decode in decodes:
            if decode.finish_reason is None:
                self._failed.inc()
                continue
            self._ended[decode.finish_reason].inc()
            if decode.finish_reason in _WITHDRAWN:
                self._metrics.cancelled_tokens_saved_total.inc(self._expected_rest(decode))
                continue
            if decode.slots > 1:
                self._metrics.searched_segments_total.inc()
            source_tokens = len(decode.source_ids)
            self._metrics.length_ratio.observe(len(decode.target_ids) / max(source_tokens - 1, 1))
            if decode.finish_reason is FinishReason.EOS:
                self._source_tokens += source_tokens
                self._target_tokens += len(decode.target_ids)

    def _expected_rest(self, decode: Decode) -> float:
        """Estimate how many tokens a segment would still have got, if it were like those before it."""
        ratio = self._target_tokens / self._source_tokens if self._source_tokens else 1.0
        expected = min(ratio * len(decode.source_ids), decode.max_target_tokens)
        return max(0.0, expected - len(decode.target_ids))
