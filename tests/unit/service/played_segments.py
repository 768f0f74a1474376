"""How a segment ends, done by a test."""

from dragoman.errors import DragomanError
from service.decode import FinishReason
from service.segment import Segment


def end(segment: Segment, reason: FinishReason = FinishReason.EOS, now_s: float = 0.0) -> Segment:
    segment.decode.finish(reason, now_s)
    segment.finished = True
    return segment


def fail(segment: Segment, error: DragomanError) -> None:
    segment.decode.fail(error, 0.0)
    segment.finished = True
