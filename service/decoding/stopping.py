"""The next token of a segment, and whether it is its last."""

from service.decode import Decode, FinishReason
from service.decoding.repetition import FEWEST_TOKENS, ends_in_cycle, fewest_cycle_tokens


def extend(decode: Decode, token: int, now_s: float) -> None:
    """Append a token to a segment's translation, and end the segment at its limit or where it repeats itself."""
    decode.target_ids.append(token)
    tokens = len(decode.target_ids)
    if tokens >= decode.max_target_tokens:
        decode.finish(FinishReason.LENGTH, now_s)
    elif decode.decoding.stops_at_repetition and tokens >= FEWEST_TOKENS and _goes_round(decode):
        decode.finish(FinishReason.REPETITION, now_s)


def _goes_round(decode: Decode) -> bool:
    fewest_tokens = decode.cycle_tokens or FEWEST_TOKENS
    if not ends_in_cycle(decode.target_ids, fewest_tokens):
        return False
    decode.cycle_tokens = fewest_cycle_tokens(decode.source_ids)  # only now: few sentences come here
    return ends_in_cycle(decode.target_ids, decode.cycle_tokens)
