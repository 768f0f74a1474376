"""Who goes next: decisions about slots, in plain Python, with no clock, array or thread of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.engine import stopping
from service.engine.selection import Selection
from service.segment import FinishReason, Segment, SegmentStatus

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
    admitted: list[Segment]
    ended: list[Segment]


@dataclass(frozen=True)
class StepResult:
    """What one step did.

    Attributes:
        moves: of the slots whose segments finished, see `Scheduler`.
        progressed: segments to tell somebody about.
        tokens: target tokens decoded.
    """

    moves: list[Move]
    progressed: list[Segment]
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
        self.active: list[Segment] = []

    @property
    def free(self) -> int:
        """Slots without a segment."""
        return self._slots - len(self.active)

    def plan(self, arrivals: Sequence[Segment], now_s: float) -> StepPlan:
        """Drop segments that nobody waits for any more, and admit the other arrivals."""
        dropped = [slot for slot in expired_or_cancelled(self.active, now_s) if self.active[slot].end_early(now_s)]
        ended = [self.active[slot] for slot in dropped]
        moves = self._release(dropped)
        admitted = []
        for segment in arrivals:
            if segment.end_early(now_s):
                ended.append(segment)
            else:
                segment.status = SegmentStatus.ENCODING
                segment.admitted_s = now_s
                admitted.append(segment)
        return StepPlan(moves, admitted, ended)

    def admit(self, segment: Segment) -> int:
        """Give a segment, whose memory is known, the next slot; returns the slot."""
        segment.status = SegmentStatus.DECODING
        self.active.append(segment)
        self._scored += segment.decoding.wants_log_probability
        return len(self.active) - 1

    def scored(self) -> list[int]:
        """Slots whose segments want their log-probabilities."""
        if not self._scored:
            return []
        return [slot for slot, segment in enumerate(self.active) if segment.decoding.wants_log_probability]

    def commit(self, selection: Selection, now_s: float) -> StepResult:
        """Append each active segment's next token, and end those that are complete, or failed: these have None.

        Args:
            selection: the token of every slot.
            now_s: the time of the step.
        """
        done, progressed, tokens = [], [], 0
        for slot, log_probability in selection.log_probabilities.items():
            self.active[slot].log_probability += log_probability  # before its end shows to another thread
        for slot, (segment, token) in enumerate(zip(self.active, selection.tokens, strict=True)):
            if token is None:
                segment.fail_alone(now_s)
            else:
                if segment.first_token_s is None:
                    segment.first_token_s = now_s
                if token == self._eos_id:
                    segment.finish(FinishReason.EOS, now_s)
                else:
                    tokens += 1
                    stopping.extend(segment, token, now_s)
            if segment.finished:
                done.append(slot)
                progressed.append(segment)
            elif segment.wants_deltas:
                progressed.append(segment)
        return StepResult(self._release(done), progressed, tokens)

    def clear(self) -> list[Segment]:
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


def expired_or_cancelled(segments: Iterable[Segment], now_s: float) -> list[int]:
    """The places of those that look cancelled or past their deadline; a deadline may move, so ask each once more."""
    # Without a call for each: every slot is asked at every step.
    return [
        place
        for place, segment in enumerate(segments)
        if segment.cancel_requested or ((deadline_s := segment.deadline_s) is not None and now_s >= deadline_s)
    ]
