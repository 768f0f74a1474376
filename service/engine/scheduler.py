"""Decisions about slots, in plain Python, with no clock, array or thread of its own."""

from collections.abc import Callable, Iterable, Mapping

from service.decode import Decode, DecodeStatus
from service.engine.rows import new_row
from service.engine.step import Asked, Best, Edit, Move, Row, RunOutputs, Step


class Scheduler:
    """The segments of one decode batch: the row `active[slot]` is in that slot; a beam search has several slots.

    Slots are kept dense: the row of the last slot moves into a slot that is released. An error in a decision about one
    segment ends that segment alone.

    Attributes:
        active: the rows of the segments, by slot.
        free: number of slots that no segment has or may still need.
    """

    def __init__(self, slots: int, eos_id: int, on_failure: Callable[[Exception], None] = lambda error: None) -> None:
        """Make slots without segments.

        Args:
            on_failure: called with an error that ends one segment, and no other.
        """
        self._slots = self.free = slots
        self._eos_id = eos_id
        self._on_failure = on_failure
        self.active: list[Row] = []

    def admit(self, decode: Decode) -> None:
        """Give a segment the next slot, where its memory is already; in all it will take `decode.slots` free slots.

        If it raises, nothing has changed.
        """
        self.active.append(new_row(decode, len(self.active), self._eos_id))
        self.free -= decode.slots
        decode.status = DecodeStatus.DECODING

    def ask(self, tokens: list[int | None], outputs: RunOutputs) -> dict[int, Asked]:
        """Have segments read the results of a step, and choose their tokens.

        Args:
            tokens: the most probable token of each slot, None where the decoder failed on the slot; changed in place
                where another token is chosen, or the choice fails.

        Returns:
            The log-probabilities that the commit needs, by slot.
        """
        asked: dict[int, Asked] = {}
        for slot, row in enumerate(self.active):
            if row.asks and (token := tokens[slot]) is not None:
                try:
                    tokens[slot], wanted = row.ask(slot, token, outputs)
                except Exception as error:
                    self._on_failure(error)
                    tokens[slot] = wanted = None
                if wanted is not None:
                    asked[slot] = wanted
        return asked

    def commit(self, tokens: list[int | None], best: Mapping[int, Best], now_s: float) -> Step:
        """Append each active segment's next token, and end segments that are complete, or have failed (None)."""
        step = Step(self.active, tokens, best, now_s)
        before = self.active.copy()  # a beam search adds rows meanwhile
        for slot, (row, token) in enumerate(zip(before, tokens, strict=True)):
            try:
                self.active[slot] = row.commit(slot, token, step)
            except Exception as error:
                self._on_failure(error)
                row.decode.fail_alone(now_s)
                step.progressed.append(row.decode)
        if step.progressed:
            step.edits += self.release()
        return step

    def release(self) -> list[Edit]:
        """Take segments that have ended out of their slots; gives the edits for the slots."""
        ended = [slot for slot, row in enumerate(self.active) if row.decode.status is not DecodeStatus.DECODING]
        self.free += sum([decode.slots for decode in {self.active[slot].decode for slot in ended}])
        moves: list[Edit] = []
        for slot in reversed(ended):  # the highest first, so that no ended segment is moved
            row, last = self.active.pop(), len(self.active)
            if slot < last:
                self.active[slot] = row
                row.move(last, slot)
                moves.append(Move(last, slot))
        return moves

    def clear(self) -> list[Decode]:
        """Take all segments out of their slots; gives each once."""
        active = list(dict.fromkeys([row.decode for row in self.active]))
        self.active.clear()
        self.free = self._slots
        return active


def end_early(decodes: Iterable[Decode], now_s: float) -> list[Decode]:
    """End the segments that were cancelled or are past their deadline; gives each once."""
    # Checked here, without a call for each: this runs over every slot at every step.
    return [
        decode
        for decode in decodes
        if (decode.cancel_requested or ((deadline_s := decode.deadline_s) is not None and now_s >= deadline_s))
        and not decode.finished
        and decode.end_early(now_s)
    ]
