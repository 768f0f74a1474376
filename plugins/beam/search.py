"""The beam search of one segment: its beam, and the slots of its hypotheses."""

from plugins.beam.beam import Beam, common_length
from service import plugins
from service.decode import Attention, Decode
from service.engine.repetition import goes_round
from service.engine.step import Asked, Copy, Force, Row, RunOutputs, Step


class Search(Row):
    """A segment whose hypotheses occupy slots: one slot until the first token is chosen.

    Attributes:
        slots: the slot of each lane of the beam.
        beam: the beam of the segment.
    """

    def __init__(self, decode: Decode, slot: int, eos_id: int) -> None:
        """Begin in a slot."""
        super().__init__(decode)
        self.slots = [slot]
        self.beam = _new_beam(decode, eos_id)
        self._attention: dict[int, Attention] = {}  # of the current step, by slot

    def ask(self, slot: int, token: int, outputs: RunOutputs) -> tuple[int, Asked | None]:
        """Record the attention, and request the best tokens."""
        if self.decode.decoding.wants_attention:
            self._attention[slot] = outputs.attention_of(slot)
        return token, Asked(2 * self.beam.size, self.beam.asked_ids(self.slots.index(slot)))

    def commit(self, slot: int, token: int | None, step: Step) -> Row:
        """Advance all slots together, when the first of them is committed."""
        if slot == self.slots[0]:
            if all(each in step.best and step.tokens[each] is not None for each in self.slots):
                self._advance(step)
            else:
                self.decode.fail_alone(step.now_s)
            if self.decode.finished or (self.decode.wants_deltas and self._settle()):
                step.progressed.append(self.decode)
        return self

    def begin_with(self, token: int, attention: Attention | None, step: Step) -> None:
        """Append a forced token to the only hypothesis; the token does not count in scores."""
        self.beam.begin_with(token, attention)

    def move(self, source: int, target: int) -> None:
        """Record that the content of one of its slots has moved to another slot."""
        self.slots[self.slots.index(source)] = target

    def _advance(self, step: Step) -> None:
        """Choose the next hypotheses and their slots, or end the search."""
        decode, beam, before = self.decode, self.beam, self.beam.live
        if decode.first_token_s is None:
            decode.first_token_s = step.now_s
        best = [step.best[slot] for slot in self.slots]
        if self._attention:
            best = [each._replace(attention=self._attention[slot]) for slot, each in zip(self.slots, best, strict=True)]
        parents = beam.advance(best)
        if not beam.ended and goes_round(decode, max(beam.live, key=lambda live: live.log_probability).ids):
            beam.stop()
        if beam.ended:
            self._settle()
            step.target_tokens += len(decode.target_ids)
            decode.finish(beam.finished[0].finish_reason, step.now_s)
            return
        given = len(decode.start_ids[1:])
        for lane, parent in enumerate(parents):
            if lane >= len(before):
                self.slots.append(step.fork(self, self.slots[parent]))
            elif parent != lane:
                # position 0 holds the keys of the start id, later positions those of tokens
                first = 1 + given + common_length(before[parent].ids, before[lane].ids)
                step.edits.append(Copy(self.slots[parent], self.slots[lane], first))
        step.edits += [Force(slot, live.ids[-1]) for slot, live in zip(self.slots, beam.live, strict=True)]

    def _settle(self) -> bool:
        """Write the final tokens or the result into the segment; returns whether the segment became longer."""
        decode, beam = self.decode, self.beam
        known = len(decode.target_ids)
        if beam.ended:
            best = beam.finished[0]
            decode.target_ids.extend(best.target_ids[known:])
            decode.log_probability = best.log_probability
            decode.attention = list(best.attention)
            decode.hypotheses = beam.finished[: decode.decoding.alternatives]
        else:
            decode.target_ids.extend(beam.common_ids(known)[known:])
        return len(decode.target_ids) > known


def _new_beam(decode: Decode, eos_id: int) -> Beam:
    size, length_penalty = decode.decoding.beam_size, decode.decoding.length_penalty
    limit, given = decode.max_target_tokens, len(decode.start_ids[1:])
    if decode.constraints is None:
        return Beam(size, length_penalty, limit=limit, eos_id=eos_id, given=given)
    wanted = max(1, decode.decoding.alternatives)
    beam: Beam = plugins.needed(plugins.BEAMS, "searches for no terms")(
        size, length_penalty, limit=limit, eos_id=eos_id, constraints=decode.constraints, wanted=wanted, given=given
    )
    return beam
