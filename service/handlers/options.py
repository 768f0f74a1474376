"""The options of a valid request, in the form that the engine and the texts need."""

import secrets
from typing import Final

from dragoman.v1 import translation_pb2 as pb
from service import plugins
from service.options import (
    DEFAULT_LENGTH_PENALTY,
    DEFAULT_TEMPERATURE,
    DEFAULT_TOP_P,
    SEED_BITS,
    Decoding,
    Priority,
    RequestOptions,
    Sampling,
    XmlTags,
)
from service.registry.catalog import Choice
from service.terms import Terms
from service.wire import TAGGED, XML

_PRIORITY: Final = {pb.PRIORITY_INTERACTIVE: Priority.INTERACTIVE, pb.PRIORITY_BULK: Priority.BULK}


def options_of(
    asked: pb.TranslateTextRequest | pb.BatchTranslateTextConfig,
    chosen: Choice,
    *,
    max_target_tokens: int,
    beam_size: int,
    sampling: Sampling | None = None,
    prefix_ids: tuple[int, ...] = (),
    terms: Terms | None = None,
) -> RequestOptions:
    """Give the options of a request.

    Args:
        beam_size: beam size of each segment without terms.

    Raises:
        InvalidRequestError: the plugin for beam search or for sampling is missing.
    """
    wanted = asked.options
    length_penalty = wanted.length_penalty if wanted.HasField("length_penalty") else DEFAULT_LENGTH_PENALTY
    if beam_size > 1:
        plugins.needed(plugins.SEARCHES, "searches with no beam")
    if sampling is not None:
        plugins.needed(plugins.DRAWS, "draws no tokens")
    return RequestOptions(
        decoding=Decoding.of(
            beam_size=beam_size,
            length_penalty=length_penalty,
            alternatives=wanted.alternatives,
            log_probability=wanted.mean_log_probability,
            sampling=sampling,
        ),
        length_penalty=length_penalty,
        max_target_tokens=max_target_tokens,
        priority=priority_of(asked),
        source_language=chosen.source,
        target_language=chosen.target,
        has_tags=asked.mime_type in TAGGED,
        xml=_xml_tags(wanted.xml_tags) if asked.mime_type == XML else None,
        alternatives=wanted.alternatives,
        mean_log_probability=wanted.mean_log_probability,
        alignments=wanted.alignments,
        quality_estimate=wanted.quality_estimate,
        prefix_ids=prefix_ids,
        terms=terms,
    )


def priority_of(asked: pb.TranslateTextRequest | pb.BatchTranslateTextConfig | pb.ScoreTextRequest) -> Priority:
    """Give the priority of a request; without one, the priority of its method."""
    default = Priority.BULK if isinstance(asked, pb.BatchTranslateTextConfig) else Priority.INTERACTIVE
    return _PRIORITY.get(asked.priority, default)


def sampling_of(options: pb.TranslateOptions) -> Sampling | None:
    """Read the options of sampling; None where tokens are not sampled."""
    if not options.HasField("sampling"):
        return None
    asked = options.sampling
    return Sampling(
        seed=asked.seed if asked.HasField("seed") else secrets.randbits(SEED_BITS),
        temperature=asked.temperature if asked.HasField("temperature") else DEFAULT_TEMPERATURE,
        top_k=asked.top_k,
        top_p=asked.top_p if asked.HasField("top_p") else DEFAULT_TOP_P,
    )


def _xml_tags(tags: pb.XmlTags) -> XmlTags:
    return XmlTags(frozenset(tags.splitting), frozenset(tags.kept))
