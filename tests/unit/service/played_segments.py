"""What the engine and the intake do with a segment, done by a test."""

from dragoman.errors import DragomanError
from service.decode import Decode, FinishReason
from service.segment import Segment


def begun(segment: Segment) -> Decode:
    """The decode of a segment, which gets one of its own first if it has none."""
    if not segment.decode.source_ids:
        segment.decode = segment.new_decode()
    return segment.decode


def end(segment: Segment, reason: FinishReason = FinishReason.EOS, now_s: float = 0.0) -> Segment:
    begun(segment).finish(reason, now_s)
    segment.finished = True
    return segment


def fail(segment: Segment, error: DragomanError) -> None:
    begun(segment).fail(error, 0.0)
    segment.finished = True
