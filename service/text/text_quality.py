"""The quality estimates of one text, segment by segment, as a plugin makes them."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from service.decode import Decode, FinishReason

_DIGITS: Final = 4  # of an estimate, after the point


class SegmentQuality(NamedTuple):
    """The quality estimate of the translation of one segment.

    Attributes:
        start: where the segment begins in the translation of its text, in characters.
        stop: where the segment ends.
        estimate: how probable it is that a reader accepts the translation, 0 to 1.
    """

    start: int
    stop: int
    estimate: float


class Estimator(Protocol):
    """Estimates the quality of the translations of one model.

    Attributes:
        needs_log_probability: whether it needs the log-probabilities of translations.
    """

    needs_log_probability: bool

    def judge(
        self,
        source: str,
        translation: str,
        languages: tuple[str, str],
        *,
        unfinished: bool,
        unknown_pieces: int,
        mean_log_probability: float,
    ) -> float:
        """Estimate how probable it is that a reader accepts a translation, 0 to 1.

        Args:
            languages: codes of the source and target languages; "": not known.
            unfinished: whether it was cut off at a limit, or stopped because it repeated itself.
            unknown_pieces: pieces of the source that the model could not read.
            mean_log_probability: of its tokens, in natural logarithms; ignored where it is not needed.
        """


class TextQuality:
    """The quality estimates of one text, in the order of the text.

    Attributes:
        segments: the estimates so far.
    """

    def __init__(self, estimator: Estimator, source_language: str, target_language: str) -> None:
        self.segments: list[SegmentQuality] = []
        self._estimator = estimator
        self._languages = (source_language, target_language)
        self._lengths: list[int] = []

    def add(self, source: str, translation: str, decode: Decode, unknown_pieces: int, start: int, stop: int) -> None:
        """Estimate the next segment; its source is without kept parts, its place is in the whole translation."""
        estimate = self._estimator.judge(
            source,
            translation,
            self._languages,
            unfinished=decode.finish_reason is not FinishReason.EOS,
            unknown_pieces=unknown_pieces,
            mean_log_probability=decode.log_probability / max(1, decode.decoded_tokens),
        )
        self.segments.append(SegmentQuality(start, stop, estimate))
        self._lengths.append(len(source) + 1)  # an empty source counts, too

    @property
    def estimate(self) -> float | None:
        """The mean of the segments, each counted by the length of its source; None without a segment."""
        if not self.segments:
            return None
        total = sum(each.estimate * length for each, length in zip(self.segments, self._lengths, strict=True))
        return rounded(total / sum(self._lengths))


def rounded(estimate: float) -> float:
    """Round an estimate to the digits of every estimate."""
    return round(estimate, _DIGITS)


def without(text: str, spans: Iterable[tuple[int, int]], between: str = "") -> str:
    """Give a text with `between` in place of the characters [start, stop) of spans, which are in their order."""
    pieces, done = [], 0
    for start, stop in spans:
        pieces.append(text[done:start])
        done = max(done, stop)
    return between.join([*pieces, text[done:]])
