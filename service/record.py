"""What is known of one call at its end: for its answer, its errors, and whoever writes it down."""

import time
import uuid
from dataclasses import dataclass, field

import grpc

from service.request import Segment


@dataclass(slots=True)
class Record:
    """One call, filled while it runs; lives on the event loop.

    Attributes:
        method: its name, such as "TranslateText".
        request_id: given by the caller, else made up.
        caller: who calls, see `callers`.
        model: the name of its model; "" before that was chosen.
        texts: how many it asked for so far.
        failed_texts: how many of them were answered with an error of their own.
        segments: how many were submitted for it.
        source_tokens: of the segments that ended, without the end-of-sentence tokens.
        target_tokens: of the same, as far as they were decoded.
        queue_s: the longest that a segment waited for an engine thread.
        encode_s: the longest from there to a first token.
        decode_s: the longest from there to the end of a segment.
        code: how it ended.
        reason: of its error; "" where it has none.
        began_s: when it arrived, on the clock of `time.monotonic`.
        duration_s: from there to its end.
    """

    method: str
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    caller: str = ""
    model: str = ""
    texts: int = 0
    failed_texts: int = 0
    segments: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    queue_s: float = 0.0
    encode_s: float = 0.0
    decode_s: float = 0.0
    code: grpc.StatusCode = grpc.StatusCode.OK
    reason: str = ""
    began_s: float = field(default_factory=time.monotonic)
    duration_s: float = 0.0

    def note(self, segment: Segment) -> None:
        """Count a segment that has ended or was withdrawn; a stage that it did not reach counts for nothing."""
        self.source_tokens += len(segment.source_ids) - 1
        self.target_tokens += len(segment.target_ids)
        self.queue_s = max(self.queue_s, _span_s(segment.submitted_s, segment.admitted_s))
        self.encode_s = max(self.encode_s, _span_s(segment.admitted_s, segment.first_token_s))
        self.decode_s = max(self.decode_s, _span_s(segment.first_token_s, segment.finished_s))


def _span_s(start_s: float | None, end_s: float | None) -> float:
    return 0.0 if start_s is None or end_s is None else end_s - start_s
