"""How segments end, counted: why, how long they got, and how many tokens need not be decoded for nobody."""

from collections.abc import Iterable
from typing import Final

from service.segment import FinishReason, Segment
from service.telemetry.metrics import ModelMetrics

_WITHDRAWN: Final = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_FAILED: Final = "INTERNAL"


class SegmentStats:
    """The ends of one engine's segments; for one thread at a time."""

    def __init__(self, metrics: ModelMetrics) -> None:
        self._metrics = metrics
        self._ended = {reason: metrics.segments_total[reason.name] for reason in FinishReason}
        self._failed = metrics.segments_total[_FAILED]
        self._source_tokens = self._target_tokens = 0  # of the segments that the model ended

    def enter(self, segments: Iterable[Segment]) -> None:
        """Count segments that have ended."""
        for segment in segments:
            if segment.finish_reason is None:
                self._failed.inc()
                continue
            self._ended[segment.finish_reason].inc()
            if segment.finish_reason in _WITHDRAWN:
                self._metrics.cancelled_tokens_saved_total.inc(self._expected_rest(segment))
                continue
            source_tokens = len(segment.source_ids)
            self._metrics.length_ratio.observe(len(segment.target_ids) / max(source_tokens - 1, 1))
            if segment.finish_reason is FinishReason.EOS:
                self._source_tokens += source_tokens
                self._target_tokens += len(segment.target_ids)

    def _expected_rest(self, segment: Segment) -> float:
        """Estimate how many tokens a segment would still have got, if it were like those before it."""
        ratio = self._target_tokens / self._source_tokens if self._source_tokens else 1.0
        expected = min(ratio * len(segment.source_ids), segment.max_target_tokens)
        return max(0.0, expected - len(segment.target_ids))
