"""The beam search of one segment: its beam, and the slots that its hypotheses are in."""

from typing import NamedTuple

from service.decode import Decode
from service.engine.beam import Beam, Best, common_length
from service.engine.constrained_beam import ConstrainedBeam
from service.engine.repetition import FEWEST_TOKENS
from service.engine.stopping import goes_round


class SearchStep(NamedTuple):
    """What becomes of the slots of a search, before any is released.

    Attributes:
        copies: a slot to go on as, the slot that does, and the first position at which their keys differ.
        forks: slots to begin another as, each in the next slot there is.
        tokens: of each slot, the new ones last, the token to go on from.
    """

    copies: list[tuple[int, int, int]]
    forks: list[int]
    tokens: list[tuple[int, int]]


class Search:
    """A segment whose hypotheses are in slots: in one, until a token was chosen.

    Attributes:
        slots: by lane of the beam.
        beam: of the segment.
    """

    __slots__ = ("_decode", "beam", "slots")

    def __init__(self, decode: Decode, slot: int, eos_id: int) -> None:
        """Begin in a slot."""
        self._decode = decode
        self.slots = [slot]
        self.beam = _new_beam(decode, eos_id)

    @property
    def reserved(self) -> int:
        """Slots that it will take, and has not."""
        return self.beam.size - len(self.slots)

    def advance(self, best: list[Best], next_slot: int) -> SearchStep | None:
        """Take a step.

        Args:
            best: of each lane, the best next tokens.
            next_slot: the first that has no segment.

        Returns:
            What becomes of the slots; None where the search has ended.
        """
        before = self.beam.live
        parents = self.beam.advance(best)
        if not self.beam.ended and self._decode.decoding.stops_at_repetition:
            ids = self.beam.best_live.ids
            if len(ids) >= FEWEST_TOKENS and goes_round(self._decode, ids):
                self.beam.stop()
        if self.beam.ended:
            return None
        given = len(self._decode.start_ids[1:])
        copies, forks = [], []
        for lane, parent in enumerate(parents):
            if lane >= len(before):
                forks.append(self.slots[parent])
                self.slots.append(next_slot)
                next_slot += 1
            elif parent != lane:
                # The first position holds the keys of the start id, each further one those of a token.
                first = 1 + given + common_length(before[parent].ids, before[lane].ids)
                copies.append((self.slots[parent], self.slots[lane], first))
        tokens = [(slot, live.ids[-1]) for slot, live in zip(self.slots, self.beam.live, strict=True)]
        return SearchStep(copies, forks, tokens)

    def move(self, source: int, target: int) -> None:
        """Note that what is in one of its slots is in another now."""
        self.slots[self.slots.index(source)] = target

    def settle(self) -> bool:
        """Write what no later step can change, or what was found, into the segment; says whether it got longer."""
        decode, beam = self._decode, self.beam
        known = len(decode.target_ids)
        if not beam.ended:
            decode.target_ids.extend(beam.common_ids(known)[known:])
            return len(decode.target_ids) > known
        best = beam.finished[0]
        decode.target_ids.extend(best.target_ids[known:])
        decode.log_probability = best.log_probability
        decode.attention = list(best.attention)
        decode.hypotheses = beam.finished[: decode.decoding.alternatives]
        return len(decode.target_ids) > known


def _new_beam(decode: Decode, eos_id: int) -> Beam:
    size, length_penalty = decode.decoding.beam_size, decode.decoding.length_penalty
    limit, given = decode.max_target_tokens, len(decode.start_ids[1:])
    if decode.constraints is None:
        return Beam(size, length_penalty, limit=limit, eos_id=eos_id, given=given)
    return ConstrainedBeam(
        size,
        length_penalty,
        limit=limit,
        eos_id=eos_id,
        constraints=decode.constraints,
        wanted=max(1, decode.decoding.alternatives),
        given=given,
    )
