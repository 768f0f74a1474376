"""Who goes next: decisions about slots, in plain Python, with no clock, array or thread of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.decode import Decode, DecodeStatus, FinishReason
from service.decoding import stopping
from service.decoding.selection import Selection

# The last active slot, whose segment moves to the slot that is released; the same where that is the last one.
Move = tuple[int, int]


@dataclass(frozen=True)
class StepPlan:
    """What one step will do.

    Attributes:
        moves: of the slots whose segments were cancelled or are past their deadline, see `Scheduler`.
        admitted: segments to encode, and then to give a slot.
        ended: segments that get no slot, or lose theirs.
    """

    moves: list[Move]
    admitted: list[Decode]
    ended: list[Decode]


@dataclass(frozen=True)
class StepResult:
    """What one step did.

    Attributes:
        forced: slots, before the moves, with the token that they go on from instead of the one that was chosen.
        moves: of the slots whose segments finished, see `Scheduler`.
        progressed: segments to tell somebody about.
        tokens: target tokens decoded.
    """

    forced: list[tuple[int, int]]
    moves: list[Move]
    progressed: list[Decode]
    tokens: int


class Scheduler:
    """The segments of one decode batch: `active[slot]` is in that slot.

    Slots are kept dense: where one is released, the last one's segment moves into it. These moves are told to the owner
    of the slots' rows, one for each released slot.
    """

    def __init__(self, slots: int, eos_id: int) -> None:
        self._slots = slots
        self._eos_id = eos_id
        self._scored = 0
        self.active: list[Decode] = []

    @property
    def free(self) -> int:
        """Slots without a segment."""
        return self._slots - len(self.active)

    def plan(self, arrivals: Sequence[Decode], now_s: float) -> StepPlan:
        """Drop segments that nobody waits for any more, and admit the other arrivals."""
        dropped = [slot for slot in expired_or_cancelled(self.active, now_s) if self.active[slot].end_early(now_s)]
        ended = [self.active[slot] for slot in dropped]
        moves = self._release(dropped)
        admitted = []
        for decode in arrivals:
            if decode.end_early(now_s):
                ended.append(decode)
            else:
                decode.status = DecodeStatus.ENCODING
                decode.admitted_s = now_s
                admitted.append(decode)
        return StepPlan(moves, admitted, ended)

    def admit(self, decode: Decode) -> int:
        """Give a segment, whose memory is known, the next slot; returns the slot."""
        decode.status = DecodeStatus.DECODING
        self.active.append(decode)
        self._scored += decode.decoding.wants_log_probability
        return len(self.active) - 1

    def scored(self) -> list[int]:
        """List the slots whose segments want their log-probabilities."""
        if not self._scored:
            return []
        return [slot for slot, decode in enumerate(self.active) if decode.decoding.wants_log_probability]

    def commit(self, selection: Selection, now_s: float) -> StepResult:
        """Append each active segment's next token, and end those that are complete, or failed: these have None.

        Args:
            selection: the token of every slot.
            now_s: the time of the step.
        """
        forced, done, progressed, tokens = [], [], [], 0
        for slot, log_probability in selection.log_probabilities.items():
            if not self.active[slot].forced_ids:
                self.active[slot].log_probability += log_probability  # before its end shows to another thread
        for slot, (decode, token) in enumerate(zip(self.active, selection.tokens, strict=True)):
            if token is None:
                decode.fail_alone(now_s)
            elif decode.forced_ids:
                forced.append((slot, decode.forced_ids[0]))
                decode.forced_ids = decode.forced_ids[1:]
                continue
            else:
                if decode.first_token_s is None:
                    decode.first_token_s = now_s
                if token == self._eos_id:
                    decode.finish(FinishReason.EOS, now_s)
                else:
                    tokens += 1
                    stopping.extend(decode, token, now_s)
            if decode.finished:
                done.append(slot)
                progressed.append(decode)
            elif decode.wants_deltas:
                progressed.append(decode)
        return StepResult(forced, self._release(done), progressed, tokens)

    def clear(self) -> list[Decode]:
        """Take all segments out of their slots."""
        active, self.active, self._scored = self.active, [], 0
        return active

    def _release(self, slots: list[int]) -> list[Move]:
        """Take segments out of their slots, the highest first, so that the last one is never one of them."""
        moves = []
        for slot in sorted(slots, reverse=True):
            self._scored -= self.active[slot].decoding.wants_log_probability
            last = self.active.pop()
            if slot < len(self.active):
                self.active[slot] = last
            moves.append((len(self.active), slot))
        return moves


def expired_or_cancelled(decodes: Iterable[Decode], now_s: float) -> list[int]:
    """List the places of those that look cancelled or past their deadline; a deadline may move, so ask each again."""
    # Without a call for each: every slot is asked at every step.
    return [
        place
        for place, decode in enumerate(decodes)
        if decode.cancel_requested or ((deadline_s := decode.deadline_s) is not None and now_s >= deadline_s)
    ]
