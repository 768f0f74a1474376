"""The quality estimates of one text, segment by segment."""

from typing import NamedTuple

from service.decode import Decode, FinishReason
from service.text.quality_counts import count
from service.text.quality_estimate import QualityEstimator, rounded


class SegmentQuality(NamedTuple):
    """The quality estimate of the translation of one segment.

    Attributes:
        start: where it begins in the translation of its text, in characters.
        stop: where it ends.
        estimate: how probable it is that a reader accepts it, 0 to 1.
    """

    start: int
    stop: int
    estimate: float


class TextQuality:
    """Estimates, in the order of the text.

    Attributes:
        segments: the estimates so far.
    """

    def __init__(self, estimator: QualityEstimator, source_language: str, target_language: str) -> None:
        """Begin a text.

        Args:
            source_language: its code; "": nobody knows. Likewise that of the translation.
        """
        self.segments: list[SegmentQuality] = []
        self._estimator = estimator
        self._languages = (source_language, target_language)
        self._lengths: list[int] = []

    def add(self, source: str, translation: str, decode: Decode, unknown_pieces: int, start: int, stop: int) -> None:
        """Estimate the next segment, of its source without what stays as it is; places are in the whole translation."""
        unfinished = decode.finish_reason is not FinishReason.EOS
        counted = count(source, translation, *self._languages, unfinished=unfinished, unknown_pieces=unknown_pieces)
        mean = decode.log_probability / max(1, decode.decoded_tokens)
        self.segments.append(SegmentQuality(start, stop, self._estimator.estimate(counted, mean)))
        self._lengths.append(len(source) + 1)  # one that has nothing left counts, too

    @property
    def estimate(self) -> float | None:
        """The mean of the segments, each counted by the length of its source; None without a segment."""
        if not self.segments:
            return None
        total = sum(each.estimate * length for each, length in zip(self.segments, self._lengths, strict=True))
        return rounded(total / sum(self._lengths))
