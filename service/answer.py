"""What a call answers, as protos: translations, errors in their place, models."""

from collections.abc import Iterable
from typing import Final

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError, to_text_error
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
        return pb.TranslatedText(model=model, text_error=to_text_error(outcome))
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


def listed(manifests: Iterable[Manifest], asked: pb.ListModelsRequest) -> pb.ListModelsResponse:
    """One page of the list of models, which are ordered by name.

    The token of a page is the name of the last model of the one before: it stays good when models come and go.
    """
    rest = [manifest for manifest in manifests if manifest.name > asked.page_token]
    page = rest[: asked.page_size or None]
    return pb.ListModelsResponse(
        models=map(described, page), next_page_token=page[-1].name if len(page) < len(rest) else ""
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
