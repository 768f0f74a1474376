"""What a call answers, as protos: translations, errors in their place, models."""

from typing import Final

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError, to_status
from dragoman.v1 import translation_pb2 as pb
from service.request import FinishReason
from service.translator import TextResult

_FINISH_REASON: Final = {
    FinishReason.EOS: pb.FINISH_REASON_EOS,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.REPETITION: pb.FINISH_REASON_REPETITION,
}


def translated(outcome: TextResult | DragomanError, model: str) -> pb.TranslatedText:
    """The translation of one text by a model, or the error in its place."""
    if isinstance(outcome, DragomanError):
        return pb.TranslatedText(model=model, error=to_status(outcome))
    return pb.TranslatedText(
        translated_text=outcome.text,
        model=model,
        source_tokens=outcome.source_tokens,
        target_tokens=outcome.target_tokens,
        finish_reason=_FINISH_REASON[outcome.finish_reason],
        segments=outcome.segments,
        mean_log_probability=outcome.mean_log_probability,
        unknown_pieces=outcome.unknown_pieces,
        split=outcome.split,
    )


def described(manifest: Manifest) -> pb.Model:
    """One model of the list."""
    return pb.Model(
        name=manifest.name,
        source_language_code=manifest.source_language,
        target_language_code=manifest.target_language,
        precision=manifest.precision,
        max_source_tokens=manifest.max_source_tokens,
        max_target_tokens=manifest.max_target_tokens,
        vocabulary_size=manifest.vocabulary_size,
        checkpoint_sha256=manifest.provenance.checkpoint_sha256,
    )
