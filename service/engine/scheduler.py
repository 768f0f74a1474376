"""Who goes next: decisions about slots, in plain Python, with no clock, array or thread of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from service.engine import stopping
from service.segment import FinishReason, Segment, SegmentStatus

_NONE_WANTED: Final[Mapping[int, float]] = MappingProxyType({})


@dataclass(frozen=True)
class StepPlan:
    """What one step will do.

    Attributes:
        released: slots, in order, whose segments were cancelled or are past their deadline.
        admitted: segments to encode, and then to give a slot.
        ended: segments that get no slot, or lose theirs.
    """

    released: list[int]
    admitted: list[Segment]
    ended: list[Segment]


@dataclass(frozen=True)
class StepResult:
    """What one step did.

    Attributes:
        released: slots, in order, whose segments finished.
        progressed: segments to tell somebody about.
        tokens: target tokens decoded.
    """

    released: list[int]
    progressed: list[Segment]
    tokens: int


class Scheduler:
    """The segments of one decode batch: `active[slot]` is in that slot.

    Slots are kept dense: where one in the middle is released, the last one's segment moves into it. The owner of the
    slots' rows repeats the moves: for each released slot, in order, the last row goes there.
    """

    def __init__(self, slots: int, eos_id: int) -> None:
        self._slots = slots
        self._eos_id = eos_id
        self.active: list[Segment] = []

    @property
    def free(self) -> int:
        """Slots without a segment."""
        return self._slots - len(self.active)

    def plan(self, arrivals: Sequence[Segment], now_s: float) -> StepPlan:
        """Drop segments that nobody waits for any more, and admit the other arrivals."""
        dropped = [slot for slot in expired_or_cancelled(self.active, now_s) if self.active[slot].end_early(now_s)]
        ended = [self.active[slot] for slot in dropped]
        released = self._release(dropped)
        admitted = []
        for segment in arrivals:
            if segment.end_early(now_s):
                ended.append(segment)
            else:
                segment.status = SegmentStatus.ENCODING
                segment.admitted_s = now_s
                admitted.append(segment)
        return StepPlan(released, admitted, ended)

    def admit(self, segment: Segment) -> int:
        """Give a segment, whose memory is known, the next slot; returns the slot."""
        segment.status = SegmentStatus.DECODING
        self.active.append(segment)
        return len(self.active) - 1

    def commit(
        self, ids: Sequence[int | None], now_s: float, log_probabilities: Mapping[int, float] = _NONE_WANTED
    ) -> StepResult:
        """Append each active segment's next id, and end those that are complete, or failed: these have None.

        Args:
            ids: of every slot.
            now_s: the time of the step.
            log_probabilities: those of the ids, by slot, where the segments want them.
        """
        done, progressed, tokens = [], [], 0
        for slot, log_probability in log_probabilities.items():
            self.active[slot].log_probability += log_probability  # before its end shows to another thread
        for slot, (segment, token) in enumerate(zip(self.active, ids, strict=True)):
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

    def _release(self, slots: list[int]) -> list[int]:
        """Take segments out of their slots, the highest first, so that the last one is never one of them."""
        order = sorted(slots, reverse=True)
        for slot in order:
            last = self.active.pop()
            if slot < len(self.active):
                self.active[slot] = last
        return order


def expired_or_cancelled(segments: Iterable[Segment], now_s: float) -> list[int]:
    """The places of those that look cancelled or past their deadline; a deadline may move, so ask each once more."""
    # Without a call for each: every slot is asked at every step.
    return [
        place
        for place, segment in enumerate(segments)
        if segment.cancel_requested or ((deadline_s := segment.deadline_s) is not None and now_s >= deadline_s)
    ]
