"""Counts of ended segments: by reason, by length, and the tokens that withdrawn ones did not need."""

from collections.abc import Iterable
from typing import Final

from service.decode import Decode, FinishReason
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
