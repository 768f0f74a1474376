"""The answers of calls, as protos: translations, errors in place of translations, models."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from google.protobuf.message import Message

from dragoman.bundle import Manifest
from dragoman.errors import AnswerTooLargeError, DragomanError, to_text_error
from dragoman.v1 import translation_pb2 as pb
from service.decode import FinishReason
from service.handlers.route import Route
from service.text.alignment import Link
from service.text.alternatives import Alternative
from service.text.detection import MOST_GUESSES, Guess
from service.text.result import TextResult
from service.text.text_quality import SegmentQuality


class HasName(Protocol):
    """An item of a list that is ordered by name."""

    @property
    def name(self) -> str:
        """The name of the item."""


_Whole = TypeVar("_Whole", bound=Message)
_Named = TypeVar("_Named", bound="HasName")

FIELD_BYTES: Final = 8  # in front of a message that is a field of another
_FINISH_REASON: Final = {
    FinishReason.EOS: pb.FINISH_REASON_EOS,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.REPETITION: pb.FINISH_REASON_REPETITION,
}


# An upper bound of a streamed message without the text of its translation: counts, names, the numbers of fields.
AROUND_BYTES: Final = 1_024
_AROUND_ALTERNATIVE_BYTES: Final = 48  # likewise, of an alternative without its text
_SEGMENT_QUALITY_BYTES: Final = 22  # at most, of each: two places of up to 2^28 characters, and an estimate
_ALIGNMENT_BYTES: Final = 28  # at most, of each: four places of up to 2^28 characters, and a weight


def whole(answer: _Whole, max_bytes: int) -> _Whole:
    """Check the size of an answer that is one message; gives the answer.

    Raises:
        AnswerTooLargeError: the answer is larger than a message may be.
    """
    if (size := answer.ByteSize()) > max_bytes:
        raise _too_large(size, max_bytes)
    return answer


def sendable(outcome: TextResult | DragomanError, max_bytes: int) -> TextResult | DragomanError:
    """Give the outcome of a text as a stream can send it: an error where its translation fits no message."""
    if isinstance(outcome, DragomanError):
        return outcome
    size = len(outcome.text.encode()) + AROUND_BYTES
    size += sum(len(each.text.encode()) + _AROUND_ALTERNATIVE_BYTES for each in outcome.alternatives)
    size += len(outcome.alignments) * _ALIGNMENT_BYTES
    size += len(outcome.segment_qualities) * _SEGMENT_QUALITY_BYTES
    size += sum(len(term.encode()) + FIELD_BYTES for term in outcome.glossary_misses)
    return outcome if size <= max_bytes else _too_large(size, max_bytes)


def pieces(delta: str, max_bytes: int) -> Iterator[str]:
    """Cut a delta so that each piece fits a message."""
    characters = (max_bytes - AROUND_BYTES) // 4  # no character takes more than 4 bytes
    for start in range(0, len(delta), characters):
        yield delta[start : start + characters]


def translated(
    outcome: TextResult | DragomanError, route: Route | None, detected: Guess | None = None
) -> pb.TranslatedText:
    """Write the translation of one text, or the error in its place.

    Args:
        route: the route of the text; None: it had none.
        detected: the language of the text; None: it was not detected.
    """
    language, confidence = detected or ("", 0.0)
    model, pivot_model = ("", "") if route is None else (route.model_name, route.pivot_name)
    if isinstance(outcome, DragomanError):
        return pb.TranslatedText(
            model=model,
            pivot_model=pivot_model,
            text_error=to_text_error(outcome),
            detected_language_code=language,
            detection_confidence=confidence,
        )
    assert route is not None, "a text that went by no route has an error"
    decoding = route.options.decoding
    return pb.TranslatedText(
        translated_text=outcome.text,
        model=model,
        pivot_model=pivot_model,
        detected_language_code=language,
        detection_confidence=confidence,
        source_tokens=outcome.source_tokens,
        target_tokens=outcome.target_tokens,
        finish_reason=_FINISH_REASON[outcome.finish_reason],
        segments=outcome.segments,
        mean_log_probability=outcome.mean_log_probability,
        unknown_pieces=outcome.unknown_pieces,
        split=outcome.split,
        alternatives=map(_alternative, outcome.alternatives),
        beam_size=decoding.beam_size,
        seed=decoding.sampling.seed if decoding.sampling else None,
        alignments=map(_alignment, outcome.alignments),
        glossary_misses=outcome.glossary_misses,
        quality_estimate=outcome.quality_estimate,
        segment_qualities=map(_segment_quality, outcome.segment_qualities),
    )


def detections(rankings: Iterable[Sequence[Guess]], request_id: str) -> pb.DetectLanguageResponse:
    """Write the most probable languages of each text."""
    return pb.DetectLanguageResponse(
        detections=[
            pb.DetectedLanguages(
                languages=[
                    pb.DetectedLanguage(language_code=language, confidence=confidence)
                    for language, confidence in ranking[:MOST_GUESSES]
                ]
            )
            for ranking in rankings
        ],
        request_id=request_id,
    )


def listed(manifests: Iterable[Manifest], asked: pb.ListModelsRequest) -> pb.ListModelsResponse:
    """Write one page of the list of models, which are ordered by name."""
    shown, token = page(manifests, asked)
    return pb.ListModelsResponse(models=map(described, shown), next_page_token=token)


def described(manifest: Manifest) -> pb.Model:
    """Write one model of the list."""
    return pb.Model(
        name=manifest.name,
        source_language_code=manifest.languages.source(""),
        target_language_code=manifest.languages.target(""),
        source_language_codes=manifest.source_languages,
        target_language_codes=manifest.target_languages,
        family=manifest.family,
        precision=manifest.precision,
        max_source_tokens=manifest.max_source_tokens,
        max_target_tokens=manifest.max_target_tokens,
        vocabulary_size=manifest.vocabulary_size,
        checkpoint_sha256=manifest.provenance.checkpoint_sha256,
        note=manifest.note,
    )


def page(named: Iterable[_Named], asked: pb.ListModelsRequest | pb.ListGlossariesRequest) -> tuple[list[_Named], str]:
    """Give one page of a list that is ordered by name, and the token of the next; "" where there is none.

    The token is the name of the last item of this page: it stays valid when other items are added or removed.
    """
    rest = [each for each in named if each.name > asked.page_token]
    shown = rest[: asked.page_size or None]
    return shown, shown[-1].name if len(shown) < len(rest) else ""


def _alternative(alternative: Alternative) -> pb.Alternative:
    return pb.Alternative(
        translated_text=alternative.text,
        score=alternative.score,
        finish_reason=_FINISH_REASON[alternative.finish_reason],
        mean_log_probability=alternative.mean_log_probability,
    )


def _segment_quality(quality: SegmentQuality) -> pb.SegmentQuality:
    start, stop, estimate = quality
    return pb.SegmentQuality(target_start=start, target_end=stop, quality_estimate=estimate)


def _alignment(link: Link) -> pb.WordAlignment:
    return pb.WordAlignment(
        source_start=link.source[0],
        source_end=link.source[1],
        target_start=link.target[0],
        target_end=link.target[1],
        weight=link.weight,
    )


def _too_large(size: int, max_bytes: int) -> AnswerTooLargeError:
    return AnswerTooLargeError(
        f"the answer must be at most {max_bytes} bytes, is {size}: send fewer texts a call, or shorter ones, or ask "
        "for fewer alternatives, or for no alignments and estimates",
        metadata={"answer_bytes": str(size), "max_answer_bytes": str(max_bytes)},
    )
