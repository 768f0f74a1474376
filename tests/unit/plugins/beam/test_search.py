"""Searches among other segments: after every step each slot holds what its hypothesis has said."""

import math
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import InternalError
from service.constraints import Constraints, Term
from service.decode import Decode, DecodeStatus, FinishReason
from service.engine.scheduler import Scheduler
from service.engine.step import Best, Copy, Edit, Force, Fork, Move
from service.options import Decoding
from tests.invariants import ids_in
from tests.unit.plugins.beam.test_beam import EOS, best_of, log_probabilities
from tests.unit.plugins.terms.test_term_progress import BEGINS_WORD, TOKENS, holds, terms
from tests.unit.service.engine.test_scheduler import NOTHING, Seen, decodes_of, drop

SLOTS = 8
START = 99


class Visit(NamedTuple):
    seed: int
    beam_size: int
    given: int
    limit: int
    arrives: int
    prefix: int
    leaves: int | None  # before this step
    fails: int | None  # at this one
    terms: tuple[Term, ...] = ()  # that a search is to hold
    aligned: bool = False


class Slots:
    """What the runner keeps of each slot: the tokens whose keys are in the cache, and the one to read next."""

    def __init__(self) -> None:
        self.caches: list[list[int]] = []
        self.ids: list[int] = []

    def step(self, chosen: list[int]) -> None:
        for cache, id_ in zip(self.caches, self.ids, strict=True):
            cache.append(id_)
        self.ids = chosen

    def apply(self, edits: list[Edit]) -> None:
        for edit in edits:
            match edit:
                case Copy(source, target, first):
                    assert self.caches[source][:first] == self.caches[target][:first], "these are not copied"
                    self.caches[target] = [*self.caches[target][:first], *self.caches[source][first:]]
                case Fork(source, target):
                    assert target == len(self.caches)
                    self.caches.append(self.caches[source].copy())
                    self.ids.append(self.ids[source])
                case Force(slot, token):
                    self.ids[slot] = token
                case Move(source, target):
                    self.caches[target], self.ids[target] = self.caches[source], self.ids[source]

    def cut(self, active: int) -> None:
        """Forget what is behind the active slots."""
        del self.caches[active:], self.ids[active:]


def new_decode(visit: Visit) -> Decode:
    decoding = Decoding(beam_size=visit.beam_size, alternatives=visit.beam_size - 1, wants_attention=visit.aligned)
    start_ids = (START, *range(50, 50 + visit.given)) if visit.given else ()
    most_loss = 1.0 if visit.seed % 2 else math.inf
    constraints = Constraints(visit.terms, BEGINS_WORD, most_loss) if visit.terms and visit.beam_size > 1 else None
    return Decode(
        [visit.seed, EOS],
        visit.limit + visit.prefix + (constraints.tokens if constraints else 0),
        constraints=constraints,
        decoding=decoding,
        start_ids=start_ids,
        prefix_ids=tuple(range(60, 60 + visit.prefix)),
        wants_deltas=True,
    )


def play(visits: list[Visit]) -> list[Decode]:
    """Decodes all of them, and looks at every slot after each step."""
    scheduler, slots = Scheduler(SLOTS, EOS), Slots()
    decodes = [new_decode(visit) for visit in visits]
    of = dict(zip(decodes, visits, strict=True))
    coming = sorted(decodes, key=lambda decode: of[decode].arrives)
    told: dict[Decode, list[int]] = {decode: [] for decode in decodes}
    for time in range(sum(decode.max_target_tokens + len(decode.start_ids) + 1 for decode in decodes) + 40):
        for decode in decodes:
            if of[decode].leaves == time and decode.status is DecodeStatus.DECODING:
                decode.cancel_requested = True
        slots.apply(drop(scheduler, float(time))[1])
        slots.cut(len(scheduler.active))
        while coming and of[coming[0]].arrives <= time and coming[0].slots <= scheduler.free:
            scheduler.admit(coming.pop(0))
            slots.caches.append([])
            slots.ids.append(START)
        assert len(scheduler.active) == len(slots.caches) <= SLOTS
        if not scheduler.active:
            if not coming:
                break
            continue
        active, said = decodes_of(scheduler), [ids_in(row, slot) for slot, row in enumerate(scheduler.active)]
        best = [best_of(decode.source_ids[0], tuple(ids), TOKENS, 8) for decode, ids in zip(active, said, strict=True)]
        chosen = [None if of[decode].fails == time else each.ids[0] for decode, each in zip(active, best, strict=True)]
        asked = scheduler.ask(chosen, Seen(attention={slot: (len(ids),) for slot, ids in enumerate(said)}))
        for slot, each in asked.items():
            scores = log_probabilities(active[slot].source_ids[0], tuple(said[slot]), TOKENS)
            best[slot] = best[slot]._replace(asked=[scores[token] for token in each.ids])
            assert each.best == 2 * active[slot].slots
        slots.step([EOS if id_ is None else id_ for id_ in chosen])
        result = scheduler.commit(chosen, {slot: best[slot] for slot in asked}, float(time))
        slots.apply(result.edits)
        slots.cut(len(scheduler.active))
        for decode in result.progressed:
            assert decode.target_ids[: len(told[decode])] == told[decode], "deltas never retract"
            told[decode] = decode.target_ids.copy()
        assert len(set(result.progressed)) == len(result.progressed)
        for slot, (row, cache, id_) in enumerate(zip(scheduler.active, slots.caches, slots.ids, strict=True)):
            decode, ids = row.decode, ids_in(row, slot)
            given = decode.start_ids[
                1 : len(decode.start_ids) - max(0, len(decode.forced_ids) - len(decode.prefix_ids))
            ]
            assert tuple(ids[: len(decode.prefix_ids)]) == decode.prefix_ids[: len(ids)]
            assert [*cache, id_] == [START, *given, *ids]
    assert scheduler.free == SLOTS
    return decodes


visits = st.builds(
    Visit,
    seed=st.integers(100, 10_000),
    beam_size=st.sampled_from([1, 1, 2, 3, 4]),
    given=st.integers(0, 2),
    limit=st.integers(1, 10),
    arrives=st.integers(0, 15),
    prefix=st.integers(0, 3),
    leaves=st.none() | st.none() | st.integers(1, 25),
    fails=st.none() | st.none() | st.none() | st.integers(0, 25),
    terms=st.just(()) | terms,
    aligned=st.booleans(),
)


@given(st.lists(visits, min_size=1, max_size=8))
@example([Visit(7, 2, 0, 2, 0, 0, None, None, aligned=True), Visit(8, 1, 0, 9, 0, 0, None, None, aligned=True)])
def test_every_answer_in_company_is_the_one_alone(company: list[Visit]) -> None:
    for visit, decode in zip(company, play(company), strict=True):
        assert decode.finished
        [alone] = play([visit._replace(arrives=0, leaves=None, fails=None)])
        if decode.finish_reason in (FinishReason.EOS, FinishReason.LENGTH):
            assert decode.target_ids == alone.target_ids
            assert decode.hypotheses == alone.hypotheses
            assert decode.log_probability == alone.log_probability
            places: list[Any] = [(place,) for place in range(len(decode.target_ids))]
            assert decode.attention == (places if visit.aligned else [])
            if decode.constraints is not None and decode.constraints.most_loss == math.inf:
                assert holds(tuple(decode.target_ids), decode.constraints.terms)
        else:
            assert decode.error is not None or decode.finish_reason is FinishReason.CANCELLED
            assert decode.target_ids == alone.target_ids[: len(decode.target_ids)]


def test_slots_that_a_search_will_need_are_not_free() -> None:
    scheduler = Scheduler(4, EOS)
    scheduler.admit(Decode([1, EOS], 9, decoding=Decoding(beam_size=3)))
    assert scheduler.free == 1
    assert len(scheduler.active) == 1
    best = best_of(1, (), TOKENS, 6)
    result = scheduler.commit([best.ids[0]], {0: best}, 0.0)
    assert (scheduler.free, len(scheduler.active)) == (1, 3)
    assert [edit for edit in result.edits if isinstance(edit, Fork)] == [Fork(0, 1), Fork(0, 2)]


def test_as_many_hypotheses_are_given_as_are_wanted() -> None:
    [decode] = play([Visit(7, 4, 0, 6, 0, 0, None, None)])
    assert len(decode.hypotheses) == 3
    assert list(decode.hypotheses[0].target_ids) == decode.target_ids
    assert decode.hypotheses[0].log_probability == decode.log_probability


@pytest.mark.parametrize("stops", [True, False])
def test_a_search_whose_best_hypothesis_repeats_itself_is_stopped(stops: bool) -> None:
    decoding = Decoding(beam_size=2, stops_at_repetition=stops, alternatives=2)
    decode, scheduler = Decode([5, EOS], 60, decoding=decoding), Scheduler(2, EOS)
    scheduler.admit(decode)
    again = best_of(0, (), TOKENS, 4)._replace(ids=[4, 5, 6, EOS], log_probabilities=[-0.01, -5.0, -6.0, -9.0])
    steps = 0
    while not decode.finished:
        slots = range(len(scheduler.active))
        scheduler.commit([4 for _ in slots], dict.fromkeys(slots, again), 0.0)
        steps += 1
    assert decode.finish_reason is (FinishReason.REPETITION if stops else FinishReason.LENGTH)
    assert decode.target_ids == [4] * steps
    assert steps == (20 if stops else 60)


def test_a_search_that_goes_round_without_its_term_goes_on_until_it_holds_it() -> None:
    constraints = Constraints((((1, 6),),), BEGINS_WORD)
    decoding = Decoding(beam_size=4, stops_at_repetition=True)
    decode, scheduler = Decode([5, EOS], 60, decoding=decoding, constraints=constraints), Scheduler(4, EOS)
    scheduler.admit(decode)
    again = Best([4, 5, 7, 8, 3, 2, EOS], [-0.01, -5.0, -6.0, -9.0, -9.0, -9.0, -9.0])
    while not decode.finished:
        tokens: list[int | None] = [4] * len(scheduler.active)
        asked = scheduler.ask(tokens, NOTHING)
        best = {slot: again._replace(asked=[-40.0] * len(each.ids)) for slot, each in asked.items()}
        scheduler.commit(tokens, best, 0.0)
    assert decode.finish_reason is FinishReason.REPETITION
    assert holds(tuple(decode.target_ids), constraints.terms)
    assert len(decode.target_ids) == 20


def test_a_segment_on_which_the_search_fails_ends_alone() -> None:
    scheduler = Scheduler(4, EOS)
    failing, other = (Decode([seed, EOS], 9, decoding=Decoding(beam_size=2)) for seed in (1, 2))
    for decode in (failing, other):
        scheduler.admit(decode)
    best = best_of(2, (), TOKENS, 4)
    result = scheduler.commit([best.ids[0]] * 2, {1: best}, 0.0)
    assert isinstance(failing.error, InternalError)
    assert result.progressed == [failing]
    assert decodes_of(scheduler) == [other, other]
    assert scheduler.free == 2


def test_the_deadline_of_a_search_that_has_begun_passed_before_its_end() -> None:
    scheduler = Scheduler(2, EOS)
    decode = Decode([1, EOS], 9, decoding=Decoding(beam_size=2), deadline_s=5.0)
    scheduler.admit(decode)
    best = best_of(1, (), TOKENS, 4)
    scheduler.commit([best.ids[0]], {0: best}, 1.0)
    assert drop(scheduler, 6.0) == ([decode], [])
    assert str(decode.error) == "the deadline passed before its end"
    assert (scheduler.free, scheduler.active) == (2, [])
