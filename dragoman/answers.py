"""What the calls of the clients return, and how it is read from the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dragoman.errors import DragomanError, from_text_error
from dragoman.v1 import translation_pb2 as pb


class Alternative(NamedTuple):
    """One of the best translations of a text.

    Attributes:
        text: the text in the target language.
        score: by which they are ordered, more being better: the sum over its segments of their log-probability, divided
            by a power of the number of their tokens.
        mean_log_probability: as in `Translation`; 0 for a text without words.
        finish_reason: as in `Translation`.
    """

    text: str
    score: float
    mean_log_probability: float
    finish_reason: str


class WordAlignment(NamedTuple):
    """A word of a text, and one of its translation, of which the one became the other.

    Attributes:
        source_start: where the word begins in the text that was given, in characters.
        source_end: where it ends: it is `text[source_start:source_end]`.
        target_start: where the other begins in the text of the `Translation`.
        target_end: where it ends.
        weight: how surely the one became the other, at most 1.
    """

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    weight: float


class SegmentQuality(NamedTuple):
    """How good the translation of one segment probably is.

    Attributes:
        target_start: where it begins in the text of the `Translation`, in characters.
        target_end: where it ends: it is `text[target_start:target_end]`.
        quality_estimate: how probable it is that a reader accepts it: 0 to 1.
    """

    target_start: int
    target_end: int
    quality_estimate: float


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one text.

    Attributes:
        text: the text in the target language.
        model: the name of the model that translated it.
        source_tokens: how many tokens of the source the model read.
        target_tokens: how many tokens the model produced.
        finish_reason: "EOS" when complete, "LENGTH" when a segment was cut off at the limit of target tokens,
            "REPETITION" when one repeated itself and was stopped, "UNSPECIFIED" where there is an `error`; a
            later server may say others.
        segments: into how many segments the text was split.
        mean_log_probability: how sure the model was, if the call asked: the mean of the natural logarithms of the
            probabilities of its tokens, at most 0; None if it did not ask, or the text has no words.
        unknown_pieces: how many pieces of the text the model has no token for, and so could not read.
        split: whether a sentence was longer than the model takes, and its parts were translated each by itself.
        pivot_model: the name of the model that translated the text into a third language first, of which `model` made
            the translation; "" where `model` did all.
        error: why the text has no translation, its `text` being empty then; None where it has one. Only where the
            call did not ask for all or nothing.
        alternatives: the best translations that were found, if the call asked, the best first, which is this one.
        beam_size: how many hypotheses of each segment were kept at a time; 0 where there is an `error`, or the server
            does not say.
        seed: what gives the same draws again, if the call asked for draws; None if it did not.
        alignments: which words of the text became which, if the call asked, in the order of the translation.
        glossary_misses: the terms of the glossary, and the placeholders, that the text has and the translation has
            not, or less often.
        detected_language: the language of the text, where the server detected it; "" where the call said it, or the
            text says nothing about it.
        detection_confidence: how probable it is that the text is in that language, by itself: 0 to 1.
        quality_estimate: how probable it is that a reader accepts the translation, if the call asked: 0 to 1, the mean
            over its segments; None if it did not ask, or the text has no words.
        segment_qualities: the same of each segment, in the order of the text; () if the call did not ask.
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
    """A language in which a text may be.

    Attributes:
        language: its BCP-47 code.
        confidence: how probable it is: 0 to 1.
    """

    language: str
    confidence: float


class TokenScore(NamedTuple):
    """How probable a token is.

    Attributes:
        piece: the piece of text that it stands for, as the model's vocabulary writes it; U+2581 stands for a blank.
        log_probability: the natural logarithm of its probability, given the source and the tokens before it.
    """

    piece: str
    log_probability: float


@dataclass(frozen=True, slots=True)
class Score:
    """How probable a translation is.

    Attributes:
        model: the name of the model that scored it.
        log_probability: the natural logarithm of its probability, the sum of those of its tokens.
        mean_log_probability: the mean of them; of a translation of the model itself, that of its `Translation`.
        tokens: of the translation, and the end-of-sentence token.
        source_tokens: how many tokens the source has.
        target_tokens: how many the translation has, without the end-of-sentence token.
        error: why there is no score, all numbers being 0 then; None where there is one. Only where the call did not ask
            for all or nothing.
    """

    model: str
    log_probability: float
    mean_log_probability: float
    tokens: tuple[TokenScore, ...]
    source_tokens: int
    target_tokens: int
    error: DragomanError | None = None


class BatchTranslation(NamedTuple):
    """The answer for one of many texts; like what `enumerate` yields.

    Attributes:
        content_index: which of the texts it belongs to, from 0.
        translation: of the text, or, with its `error`, what stands in its place.
    """

    content_index: int
    translation: Translation


@dataclass(frozen=True, slots=True)
class TranslationDelta:
    """One piece of a translation while it is decoded.

    Attributes:
        content_index: which of the texts it belongs to, from 0.
        text: what to append to what has arrived of that text; nothing is ever taken back.
        result: the whole translation, in the last piece of the text (whose `text` is empty); None before. With an
            `error` what arrived of the text is void.
    """

    content_index: int
    text: str
    result: Translation | None


@dataclass(frozen=True, slots=True)
class Model:
    """One model that a server serves.

    Attributes:
        name: what to give as `model`.
        source_language: BCP-47 code of the language that it reads; "" where it reads several.
        target_language: BCP-47 code of the language that it writes; "" where it writes several.
        precision: "fp32", "int8" or "fp16".
        max_source_tokens: the longest segment that it reads; longer text is split.
        max_target_tokens: the longest translation of one segment.
        vocabulary_size: how many distinct tokens it knows.
        checkpoint_sha256: SHA-256 of the checkpoint that it was exported from, in hexadecimal.
        source_languages: BCP-47 codes of all languages that it reads.
        target_languages: BCP-47 codes of all languages that it writes.
        family: what it was imported from, such as "marian"; "" where the server does not say.
        note: what it is for, in one line; "" where nobody has said it.
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
        name: what to give in `glossaries`.
        source_language: BCP-47 code of the language of its source terms; "" where it does not say.
        target_language: likewise of its target terms.
        entries: how many terms it has.
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
        alternatives=tuple(map(_alternative, message.alternatives)),
        beam_size=message.beam_size,
        seed=message.seed if message.HasField("seed") else None,
        alignments=tuple(map(_word_alignment, message.alignments)),
        glossary_misses=tuple(message.glossary_misses),
        detected_language=message.detected_language_code,
        detection_confidence=message.detection_confidence,
        quality_estimate=message.quality_estimate if message.HasField("quality_estimate") else None,
        segment_qualities=tuple(map(_segment_quality, message.segment_qualities)),
    )


def _segment_quality(message: pb.SegmentQuality) -> SegmentQuality:
    return SegmentQuality(message.target_start, message.target_end, message.quality_estimate)


def _word_alignment(message: pb.WordAlignment) -> WordAlignment:
    return WordAlignment(
        source_start=message.source_start,
        source_end=message.source_end,
        target_start=message.target_start,
        target_end=message.target_end,
        weight=message.weight,
    )


def _alternative(message: pb.Alternative) -> Alternative:
    return Alternative(
        text=message.translated_text,
        score=message.score,
        mean_log_probability=message.mean_log_probability,
        finish_reason=_finish_reason(message.finish_reason),
    )


def _finish_reason(number: int) -> str:
    """Name a finish reason; one of a later server, which this version has no name for, is its number."""
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
    """Read in which languages a text may be."""
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
        # A server of an earlier version lists none.
        source_languages=tuple(message.source_language_codes) or (message.source_language_code,),
        target_languages=tuple(message.target_language_codes) or (message.target_language_code,),
        family=message.family,
        note=message.note,
    )


def stored_glossary_of(message: pb.StoredGlossary) -> StoredGlossary:
    """Read one glossary of the list."""
    return StoredGlossary(message.name, message.source_language_code, message.target_language_code, message.entries)


def next_page_of(message: pb.ListModelsResponse) -> pb.ListModelsRequest | None:
    """Build the request of the page of the list that follows; None after the last one."""
    return pb.ListModelsRequest(page_token=message.next_page_token) if message.next_page_token else None
