"""What a message asks for, as the options of a call."""

from typing import Final

from dragoman.v1 import translation_pb2 as pb
from service.handlers.context import CallContext
from service.handlers.validation import HTML, XML, Order
from service.options import DEFAULT_LENGTH_PENALTY, SCORING, Decoding, Priority, RequestOptions, XmlTags
from service.registry.catalog import Choice
from service.text.pair import Pair

_PRIORITY: Final = {pb.PRIORITY_INTERACTIVE: Priority.INTERACTIVE, pb.PRIORITY_BULK: Priority.BULK}


def into_pivot(options: RequestOptions, pivot: Choice) -> RequestOptions:
    """Give the options of a call for its texts on their way into the pivot language: nobody sees what they become.

    They are translated as well as what comes of them, with the same beam; nothing is drawn.
    """
    decoding = options.decoding
    return options._replace(
        decoding=Decoding.of(beam_size=decoding.beam_size, length_penalty=decoding.length_penalty),
        max_target_tokens=None,
        wants_deltas=False,
        source_language=pivot.source,
        target_language=pivot.target,
        alternatives=0,
        mean_log_probability=False,
        alignments=False,
        prefix_ids=(),
    )


def options_of(
    asked: pb.TranslateTextRequest | pb.BatchTranslateTextConfig,
    order: Order,
    context: CallContext,
    *,
    default: Priority = Priority.INTERACTIVE,
    wants_deltas: bool = False,
    all_or_nothing: bool = False,
) -> RequestOptions:
    """Give the options of a valid request.

    Args:
        asked: the message that has them.
        order: what it means.
        context: of the call.
        default: the priority of a call that asks for none.
        wants_deltas: whether progress is told after each step too.
        all_or_nothing: whether a text that cannot be translated ends the call.
    """
    wanted = asked.options
    return RequestOptions(
        decoding=Decoding.of(
            beam_size=order.beam_size,
            length_penalty=wanted.length_penalty if wanted.HasField("length_penalty") else DEFAULT_LENGTH_PENALTY,
            alternatives=wanted.alternatives,
            log_probability=wanted.mean_log_probability,
            sampling=order.sampling,
        ),
        max_target_tokens=order.max_target_tokens,
        deadline_s=context.deadline_s,
        wants_deltas=wants_deltas,
        client=context.caller.name,
        priority=_PRIORITY.get(asked.priority, default),
        source_language=order.source_language,
        target_language=order.target_language,
        html=asked.mime_type == HTML,
        xml=_xml_tags(wanted.xml_tags) if asked.mime_type == XML else None,
        all_or_nothing=all_or_nothing,
        alternatives=wanted.alternatives,
        mean_log_probability=wanted.mean_log_probability,
        alignments=wanted.alignments,
        quality_estimate=wanted.quality_estimate,
        prefix_ids=order.prefix_ids,
        terms=order.terms,
    )


def undetected_options_of(asked: pb.TranslateTextRequest, context: CallContext) -> RequestOptions:
    """Give those options of a request by which it is let in, before the languages of its texts are known."""
    return RequestOptions(
        deadline_s=context.deadline_s,
        client=context.caller.name,
        priority=_PRIORITY.get(asked.priority, Priority.INTERACTIVE),
    )


def scoring_options_of(asked: pb.ScoreTextRequest, order: Order, context: CallContext) -> RequestOptions:
    """Give the options of a valid request for scores.

    Args:
        asked: the message that has them.
        order: what it means.
        context: of the call.
    """
    return RequestOptions(
        decoding=SCORING,
        deadline_s=context.deadline_s,
        client=context.caller.name,
        priority=_PRIORITY.get(asked.priority, Priority.INTERACTIVE),
        source_language=order.source_language,
        target_language=order.target_language,
        all_or_nothing=asked.all_or_nothing,
        mean_log_probability=True,
    )


def pairs_of(asked: pb.ScoreTextRequest) -> list[Pair]:
    """Read the pairs of a request, each with its place in errors."""
    return [Pair(pair.source_text, pair.target_text, f"pairs[{number}].") for number, pair in enumerate(asked.pairs)]


def _xml_tags(tags: pb.XmlTags) -> XmlTags:
    return XmlTags(frozenset(tags.splitting), frozenset(tags.kept))
