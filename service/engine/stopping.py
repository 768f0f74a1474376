"""The next token of a segment, and whether it is its last."""

from collections.abc import Sequence

from service.decode import Decode, FinishReason
from service.engine.repetition import FEWEST_TOKENS, ends_in_cycle, fewest_cycle_tokens


def extend(decode: Decode, token: int, now_s: float) -> None:
    """Append a token to a segment's translation, and end the segment at its limit or where it repeats itself."""
    decode.target_ids.append(token)
    tokens = len(decode.target_ids)
    if tokens >= decode.max_target_tokens:
        decode.finish(FinishReason.LENGTH, now_s)
    elif decode.decoding.stops_at_repetition and tokens >= FEWEST_TOKENS and goes_round(decode, decode.target_ids):
        decode.finish(FinishReason.REPETITION, now_s)


def goes_round(decode: Decode, target_ids: Sequence[int]) -> bool:
    """Tell whether a translation of a segment repeats itself, more than its source explains."""
    fewest_tokens = decode.cycle_tokens or FEWEST_TOKENS
    if not ends_in_cycle(target_ids, fewest_tokens):
        return False
    decode.cycle_tokens = fewest_cycle_tokens(decode.source_ids)  # only now: few sentences come here
    return ends_in_cycle(target_ids, decode.cycle_tokens)
