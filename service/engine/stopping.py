"""The next token of a segment, and whether it is its last."""

from service.engine.repetition import FEWEST_TOKENS, ends_in_cycle, fewest_cycle_tokens
from service.segment import FinishReason, Segment


def extend(segment: Segment, token: int, now_s: float) -> None:
    """Append a token to a segment's translation, and end the segment at its limit or where it repeats itself."""
    segment.target_ids.append(token)
    tokens = len(segment.target_ids)
    if tokens >= segment.max_target_tokens:
        segment.finish(FinishReason.LENGTH, now_s)
    elif segment.decoding.stops_at_repetition and tokens >= FEWEST_TOKENS and _goes_round(segment):
        segment.finish(FinishReason.REPETITION, now_s)


def _goes_round(segment: Segment) -> bool:
    fewest_tokens = segment.cycle_tokens or FEWEST_TOKENS
    if not ends_in_cycle(segment.target_ids, fewest_tokens):
        return False
    segment.cycle_tokens = fewest_cycle_tokens(segment.source_ids)  # only now: few sentences come here
    return ends_in_cycle(segment.target_ids, segment.cycle_tokens)
