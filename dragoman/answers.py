"""The results of the clients' calls, and how they are read from the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dragoman.errors import DragomanError, from_text_error
from dragoman.v1 import translation_pb2 as pb


class Alternative(NamedTuple):
    """One of the best translations of a text.

    Attributes:
        text: the text in the target language.
        score: orders the alternatives, higher is better: the sum of the log-probabilities of all segments, divided by
            a power of the number of their tokens.
        mean_log_probability: as in `Translation`; 0 for a text that the model did not read.
        finish_reason: as in `Translation`.
    """

    text: str
    score: float
    mean_log_probability: float
    finish_reason: str


class WordAlignment(NamedTuple):
    """A word of a text, and the word of its translation that corresponds to it.

    Attributes:
        source_start: where the source word begins in the given text, in characters.
        source_end: where the source word ends: the word is `text[source_start:source_end]`.
        target_start: where the target word begins in the text of the `Translation`.
        target_end: where the target word ends.
        weight: how certain it is that the words correspond, at most 1.
    """

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    weight: float


class SegmentQuality(NamedTuple):
    """The estimated quality of the translation of one segment.

    Attributes:
        target_start: where the segment begins in the text of the `Translation`, in characters.
        target_end: where the segment ends: it is `text[target_start:target_end]`.
        quality_estimate: the probability that a reader accepts the translation of the segment: 0 to 1.
    """

    target_start: int
    target_end: int
    quality_estimate: float


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one text.

    Attributes:
        text: the text in the target language.
        model: the name of the model that translated the text.
        source_tokens: how many tokens of the source the model read.
        target_tokens: how many tokens the model produced.
        finish_reason: "EOS" when complete, "LENGTH" when a segment was cut off at the limit of target tokens,
            "REPETITION" when a segment repeated itself and was stopped, "UNSPECIFIED" when there is an `error`. A later
            server may send other values.
        segments: into how many segments the text was split.
        mean_log_probability: how sure the model was: the mean of the natural logarithms of the probabilities of its
            tokens, at most 0; None if the call did not ask for it, or the text has no letter or digit.
        unknown_pieces: how many pieces of the text the model could not read, because it has no token for them.
        split: whether a sentence was longer than the model's limit and was translated in separate parts.
        pivot_model: the name of the model that first translated the text into a third language, from which `model`
            translated; "" where `model` translated the text alone.
        error: why the text has no translation (`text` is empty then); None where the text has one. Set only in calls
            with `all_or_nothing=False`.
        alternatives: if the call asked for them, the best translations, best first; the first is this translation.
        beam_size: how many hypotheses of each segment were kept at a time; 0 if there is an `error`, or the server
            does not report it.
        seed: the seed that gives the same draws again; None if the call did not ask for draws.
        alignments: if the call asked for them, the pairs of corresponding words, in the order of the translation.
        glossary_misses: the terms of the glossary, and the placeholders, that the translation lacks or has less often
            than the text.
        detected_language: the language that the server detected; "" where the call named the language, or the text
            does not show it.
        detection_confidence: the probability that the text is in that language, judged by the text alone: 0 to 1.
        quality_estimate: the probability that a reader accepts the translation: 0 to 1, the mean over its segments;
            None if the call did not ask for it, or the text has no letter or digit.
        segment_qualities: the same for each segment, in the order of the text; () if the call did not ask for it.
    """

    text: str
    model: str
    source_tokens: int
    target_tokens: int
    finish_reason: str
    segments: int
    mean_log_probability: float | None = None
    unknown_pieces: int = 0
    split: bool = False
    error: DragomanError | None = None
    pivot_model: str = ""
    alternatives: tuple[Alternative, ...] = ()
    beam_size: int = 0
    seed: int | None = None
    alignments: tuple[WordAlignment, ...] = ()
    glossary_misses: tuple[str, ...] = ()
    detected_language: str = ""
    detection_confidence: float = 0.0
    quality_estimate: float | None = None
    segment_qualities: tuple[SegmentQuality, ...] = ()


class DetectedLanguage(NamedTuple):
    """A possible language of a text.

    Attributes:
        language: the BCP-47 code of the language.
        confidence: the probability of the language: 0 to 1.
    """

    language: str
    confidence: float


class TokenScore(NamedTuple):
    """The probability of one token.

    Attributes:
        piece: the piece of text of the token, as the model's vocabulary writes it; U+2581 stands for a blank.
        log_probability: the natural logarithm of the token's probability, given the source and the earlier tokens.
    """

    piece: str
    log_probability: float


@dataclass(frozen=True, slots=True)
class Score:
    """The probability of a given translation.

    Attributes:
        model: the name of the model that scored the translation.
        log_probability: the natural logarithm of the translation's probability: the sum over its tokens.
        mean_log_probability: the mean over its tokens; for the model's own translation, equal to that of `Translation`.
        tokens: the scores of the tokens of the translation and of the end-of-sentence token.
        source_tokens: how many tokens the source has.
        target_tokens: how many tokens the translation has, without the end-of-sentence token.
        error: why there is no score (all numbers are 0 then); None where there is a score. Set only in calls with
            `all_or_nothing=False`.
    """

    model: str
    log_probability: float
    mean_log_probability: float
    tokens: tuple[TokenScore, ...]
    source_tokens: int
    target_tokens: int
    error: DragomanError | None = None


class BatchTranslation(NamedTuple):
    """The answer to one of many texts; unpacks like an item of `enumerate`.

    Attributes:
        content_index: the index of the text, from 0.
        translation: the translation of the text; where there is none, its `error` says why.
    """

    content_index: int
    translation: Translation


@dataclass(frozen=True, slots=True)
class TranslationDelta:
    """One piece of a translation while it is decoded.

    Attributes:
        content_index: the index of the text, from 0.
        text: append this to the earlier pieces of the text; no piece is ever withdrawn.
        result: the whole translation, in the last piece of the text (whose `text` is empty); None before. If it has an
            `error`, discard the earlier pieces of the text.
    """

    content_index: int
    text: str
    result: Translation | None


@dataclass(frozen=True, slots=True)
class Model:
    """One model that a server serves.

    Attributes:
        name: the value for the argument `model`.
        source_language: BCP-47 code of the language that the model reads; "" where it reads several.
        target_language: BCP-47 code of the language that the model writes; "" where it writes several.
        precision: "fp32", "int8" or "fp16".
        max_source_tokens: the longest segment that the model reads; longer text is split.
        max_target_tokens: the longest translation of one segment.
        vocabulary_size: how many distinct tokens the model knows.
        checkpoint_sha256: SHA-256 of the checkpoint from which the model was exported, in hexadecimal.
        source_languages: BCP-47 codes of all languages that the model reads.
        target_languages: BCP-47 codes of all languages that the model writes.
        family: the kind of model that was imported, such as "marian"; "" where the server does not send it.
        note: the purpose of the model, in one line; "" where the bundle has no note.
    """

    name: str
    source_language: str
    target_language: str
    precision: str
    max_source_tokens: int
    max_target_tokens: int
    vocabulary_size: int
    checkpoint_sha256: str
    source_languages: tuple[str, ...]
    target_languages: tuple[str, ...]
    family: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class StoredGlossary:
    """One glossary that a server has stored.

    Attributes:
        name: the value for the argument `glossaries`.
        source_language: BCP-47 code of the language of its source terms; "" where the glossary does not say.
        target_language: BCP-47 code of the language of its target terms; "" where the glossary does not say.
        entries: how many terms the glossary has.
    """

    name: str
    source_language: str
    target_language: str
    entries: int


def translation_of(message: pb.TranslatedText) -> Translation:
    """Read one translation."""
    return Translation(
        text=message.translated_text,
        model=message.model,
        source_tokens=message.source_tokens,
        target_tokens=message.target_tokens,
        finish_reason=_finish_reason(message.finish_reason),
        segments=message.segments,
        mean_log_probability=message.mean_log_probability if message.HasField("mean_log_probability") else None,
        unknown_pieces=message.unknown_pieces,
        split=message.split,
        pivot_model=message.pivot_model,
        error=from_text_error(message.text_error) if message.HasField("text_error") else None,
        alternatives=tuple(
            Alternative(each.translated_text, each.score, each.mean_log_probability, _finish_reason(each.finish_reason))
            for each in message.alternatives
        ),
        beam_size=message.beam_size,
        seed=message.seed if message.HasField("seed") else None,
        alignments=tuple(
            WordAlignment(each.source_start, each.source_end, each.target_start, each.target_end, each.weight)
            for each in message.alignments
        ),
        glossary_misses=tuple(message.glossary_misses),
        detected_language=message.detected_language_code,
        detection_confidence=message.detection_confidence,
        quality_estimate=message.quality_estimate if message.HasField("quality_estimate") else None,
        segment_qualities=tuple(
            SegmentQuality(each.target_start, each.target_end, each.quality_estimate)
            for each in message.segment_qualities
        ),
    )


def _finish_reason(number: int) -> str:
    """Name a finish reason; a reason of a later server, unknown to this version, is given as its number."""
    name = pb.FinishReason.DESCRIPTOR.values_by_number.get(number)
    return name.name.removeprefix("FINISH_REASON_") if name else str(number)


def translation_delta_of(message: pb.StreamTranslateTextResponse) -> TranslationDelta:
    """Read one piece of a stream."""
    return TranslationDelta(
        content_index=message.content_index,
        text=message.text_delta,
        result=translation_of(message.result) if message.HasField("result") else None,
    )


def detected_of(message: pb.DetectedLanguages) -> list[DetectedLanguage]:
    """Read the possible languages of a text."""
    return [DetectedLanguage(each.language_code, each.confidence) for each in message.languages]


def score_of(message: pb.TextScore) -> Score:
    """Read one score."""
    return Score(
        model=message.model,
        log_probability=message.log_probability,
        mean_log_probability=message.mean_log_probability,
        tokens=tuple(TokenScore(token.piece, token.log_probability) for token in message.tokens),
        source_tokens=message.source_tokens,
        target_tokens=message.target_tokens,
        error=from_text_error(message.text_error) if message.HasField("text_error") else None,
    )


def model_of(message: pb.Model) -> Model:
    """Read one model of the list."""
    return Model(
        name=message.name,
        source_language=message.source_language_code,
        target_language=message.target_language_code,
        precision=message.precision,
        max_source_tokens=message.max_source_tokens,
        max_target_tokens=message.max_target_tokens,
        vocabulary_size=message.vocabulary_size,
        checkpoint_sha256=message.checkpoint_sha256,
        # An earlier server sends no lists of languages.
        source_languages=tuple(message.source_language_codes) or (message.source_language_code,),
        target_languages=tuple(message.target_language_codes) or (message.target_language_code,),
        family=message.family,
        note=message.note,
    )


def stored_glossary_of(message: pb.StoredGlossary) -> StoredGlossary:
    """Read one glossary of the list."""
    return StoredGlossary(message.name, message.source_language_code, message.target_language_code, message.entries)
