"""Detection of translations that repeat themselves, from the ids of one segment alone."""

from collections.abc import Sequence
from typing import Final

from service.decode import Decode

# A cycle is at most this number of tokens long ...
LONGEST_PERIOD: Final = 8
# ... and occurs at least this number of times, over this number of tokens: people repeat themselves too, but less.
FEWEST_ROUNDS: Final = 4
FEWEST_TOKENS: Final = 20


def goes_round(decode: Decode, target_ids: Sequence[int]) -> bool:
    """Tell whether a translation is to be stopped, because it repeats itself more than its source explains."""
    fewest_tokens = decode.cycle_tokens or FEWEST_TOKENS
    if not (decode.decoding.stops_at_repetition and ends_in_cycle(target_ids, fewest_tokens)):
        return False
    decode.cycle_tokens = fewest_cycle_tokens(decode.source_ids)  # only now: few sentences come here
    return ends_in_cycle(target_ids, decode.cycle_tokens)


def ends_in_cycle(target_ids: Sequence[int], fewest_tokens: int = FEWEST_TOKENS) -> bool:
    """Tell whether the last tokens, at least `fewest_tokens` and `FEWEST_ROUNDS` rounds, are one cycle.

    Called after each token, it finds a cycle at the first token at which there is one. A sentence without a cycle
    costs a few comparisons for each token, and none while the sentence is short.
    """
    if len(target_ids) < fewest_tokens:
        return False
    last = target_ids[-1]
    for period in range(1, LONGEST_PERIOD + 1):
        tokens = max(fewest_tokens, FEWEST_ROUNDS * period)
        if target_ids[-1 - period] != last or len(target_ids) < tokens:
            continue
        if target_ids[-tokens:-period] == target_ids[period - tokens :]:
            return True
    return False


def fewest_cycle_tokens(source_ids: Sequence[int]) -> int:
    """Count the fewest tokens of a cycle that the source does not explain: "ha ha ha" translates to "ha ha ha".

    The number is more than twice that of the longest cycle in the source: one source token may become two tokens.
    """
    return max(FEWEST_TOKENS, 2 * _longest_cycle(source_ids) + 1)


def _longest_cycle(ids: Sequence[int]) -> int:
    """Count the tokens of the longest cycle that occurs at least twice in a row; 0 where there is none."""
    longest = 0
    for period in range(1, LONGEST_PERIOD + 1):
        same = 0
        for first in range(len(ids) - period):
            same = same + 1 if ids[first] == ids[first + period] else 0
            if same >= period:
                longest = max(longest, same + period)
    return longest
