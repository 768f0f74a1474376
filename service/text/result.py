"""The result of a text: its translation, with all details that an answer may have."""

from collections.abc import Sequence
from typing import NamedTuple

from service.decode import FinishReason
from service.text.alignment import Link
from service.text.alternatives import Alternative
from service.text.text_quality import SegmentQuality


class TokenScore(NamedTuple):
    """The log-probability of a token of a translation.

    Attributes:
        piece: piece of text, as the vocabulary writes it.
        log_probability: the natural logarithm of its probability, given the tokens before it.
    """

    piece: str
    log_probability: float


class TextResult(NamedTuple):
    """The translation of one text.

    Attributes:
        text: the translation, with the separators of the source.
        source_tokens: tokens of the text that the model read.
        target_tokens: tokens that the model wrote, without the end-of-sentence tokens.
        finish_reason: LENGTH if any segment was cut off at its limit, else REPETITION if any was stopped, else EOS.
        segments: into how many segments the text was split.
        mean_log_probability: of all tokens that the model wrote, the end-of-sentence tokens counted, in natural
            logarithms; None where it was not asked for, or there is no segment.
        unknown_pieces: pieces of the source that the model has no token for.
        split: whether a sentence was longer than the model takes, and was split inside.
        alternatives: the best translations of the text, the best first, which is `text`; as many as were asked for, or
            all where fewer were found.
        log_probability: the sum over the same tokens as `mean_log_probability`; 0 where that is None.
        token_scores: scores of all tokens of a given translation, the end-of-sentence tokens counted.
        alignments: links between words of the source and of the translation, in the order of the translation; empty
            where they were not asked for.
        term_segments: number of segments that have terms with given translations.
        glossary_misses: the names of terms that the text lacks, each once, in their order.
        quality_estimate: how probable it is that a reader accepts the translation, 0 to 1; None where it was not asked
            for, or there is no segment.
        segment_qualities: the same of each segment.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    segments: int
    mean_log_probability: float | None
    unknown_pieces: int
    split: bool
    alternatives: Sequence[Alternative] = ()
    log_probability: float = 0.0
    token_scores: Sequence[TokenScore] = ()
    alignments: Sequence[Link] = ()
    term_segments: int = 0
    glossary_misses: Sequence[str] = ()
    quality_estimate: float | None = None
    segment_qualities: Sequence[SegmentQuality] = ()
