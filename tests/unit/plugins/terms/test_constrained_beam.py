"""Constrained searches on small languages whose every translation can be listed."""

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.beam.beam import Beam
from plugins.terms.constrained_beam import ConstrainedBeam
from service.constraints import Constraints, Form, Term
from service.decode import FinishReason
from service.engine.step import Best
from tests.unit.plugins.beam.test_beam import EOS, best_of, log_probabilities
from tests.unit.plugins.terms.test_term_progress import BEGINS_WORD, TOKENS, holds, terms

seeds = st.integers(0, 10_000)


def new_beam(
    size: int,
    wanted: tuple[Term, ...],
    limit: int,
    penalty: float = 1.0,
    count: int = 1,
    given: int = 0,
    most_loss: float = math.inf,
    at_most: tuple[tuple[Form, int], ...] = (),
) -> ConstrainedBeam:
    constraints = Constraints(wanted, BEGINS_WORD, most_loss, at_most)
    return ConstrainedBeam(size, penalty, limit=limit, eos_id=EOS, constraints=constraints, wanted=count, given=given)


def best_for(beam: Beam, seed: int, tokens: int = TOKENS, more: int = 0) -> list[Best]:
    """What a step of an engine says; beside wider searches more of the best tokens, and more that were asked for."""
    found = []
    for lane, live in enumerate(beam.live):
        scores = log_probabilities(seed, live.ids, tokens)
        asked = [scores[token] for token in beam.asked_ids(lane)] + [scores[0]] * more
        found.append(best_of(seed, live.ids, tokens, 2 * beam.size + more)._replace(asked=asked))
    return found


def searched(beam: Beam, seed: int, tokens: int = TOKENS, more: int = 0) -> Beam:
    while not beam.ended:
        beam.advance(best_for(beam, seed, tokens, more))
    return beam


def sum_of(seed: int, ids: Sequence[int], tokens: int = TOKENS, first: int = 0) -> float:
    """The log-probability of all tokens from `first` on."""
    return sum(log_probabilities(seed, tuple(ids[:at]), tokens)[ids[at]] for at in range(first, len(ids)))


@given(
    seed=seeds,
    size=st.integers(2, 6),
    wanted=terms,
    room=st.integers(0, 8),
    penalty=st.floats(-1, 2),
    count=st.integers(1, 2),
    given=st.integers(0, 2),
)
def test_all_that_is_found_holds_all_terms(
    seed: int, size: int, wanted, room: int, penalty: float, count: int, given: int
) -> None:
    limit = Constraints(wanted, BEGINS_WORD).tokens + room
    beam = searched(new_beam(size, wanted, limit, penalty, count, given), seed)
    assert 1 <= len(beam.finished) <= size
    for each in beam.finished:
        assert holds(tuple(each.target_ids), wanted)
        ended = each.finish_reason is FinishReason.EOS
        ids = (*each.target_ids, EOS) if ended else tuple(each.target_ids)
        assert ended or len(ids) == limit
        assert each.log_probability == pytest.approx(sum_of(seed, ids))
        assert each.score == pytest.approx(each.log_probability / (given + len(ids)) ** penalty)
        assert each.decoded_tokens == len(ids)
    assert [each.score for each in beam.finished] == sorted((each.score for each in beam.finished), reverse=True)
    assert len({(tuple(each.target_ids), each.finish_reason) for each in beam.finished}) == len(beam.finished)


small_forms = st.lists(st.sampled_from([1, 2]), min_size=1, max_size=2).map(tuple)
small_terms = st.lists(st.lists(small_forms, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple)
SMALL = 7  # of these, the end, 1 and 2, which begin words, and 6, with which one goes on


@given(seed=seeds, wanted=small_terms, limit=st.integers(4, 5))
def test_a_beam_that_holds_everything_finds_the_best(seed: int, wanted, limit: int) -> None:
    """Without a length penalty nothing can become better by going on, so the search may not end too early.

    No end is more probable than all else: behind such a one only terms follow.
    """
    every: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, limit + 1):
        for ids in itertools.product((1, 2, 6), repeat=length - 1):
            lasts = (EOS, 1, 2, 6) if length == limit else (EOS,)
            every += [
                (sum_of(seed, ids, SMALL) + _calm(seed, ids)[last], (*ids, last))
                for last in lasts
                if holds(ids if last == EOS else (*ids, last), wanted)
            ]
    beam = new_beam(200, wanted, limit, penalty=0.0)
    while not beam.ended:
        step = []
        for lane, live in enumerate(beam.live):
            scores = _calm(seed, live.ids)
            order = sorted((EOS, 1, 2, 6), key=lambda token: -scores[token])
            asked = [scores[token] for token in beam.asked_ids(lane)]
            step.append(Best(order, [scores[token] for token in order], asked))
        beam.advance(step)
    if every:
        best_score, best_ids = max(every)
        found = beam.finished[0]
        assert found.score == pytest.approx(best_score)
        assert (*found.target_ids, *([EOS] if found.finish_reason is FinishReason.EOS else [])) == best_ids


def _calm(seed: int, ids: tuple[int, ...]) -> list[float]:
    end, *others = log_probabilities(seed, ids, SMALL)
    return [min(end, math.log(0.5)), *others]


@given(seed=seeds, size=st.integers(2, 4), wanted=terms, more=st.integers(1, 4))
def test_what_wider_searches_beside_it_look_at_changes_nothing(seed: int, size: int, wanted, more: int) -> None:
    alone, beside = (searched(new_beam(size, wanted, 14, count=2), seed, more=each) for each in (0, more))
    assert beside.finished == alone.finished


@given(seed=seeds, size=st.integers(2, 6), wanted=terms)
def test_each_lane_continues_its_parent_and_its_own_where_it_can(seed: int, size: int, wanted) -> None:
    beam = new_beam(size, wanted, 16)
    while True:
        before = beam.live
        parents = beam.advance(best_for(beam, seed))
        if beam.ended:
            break
        assert len(before) <= len(parents) == len(beam.live) <= size, "no slot is without a hypothesis"
        for lane, parent in enumerate(parents):
            assert beam.live[lane].ids[:-1] == before[parent].ids
            assert parent == lane or parents[parent] == parent


@given(seed=seeds, size=st.integers(2, 6), wanted=terms, most_loss=st.floats(0, 2))
def test_terms_that_cost_too_much_give_way_to_the_best_without_some(
    seed: int, size: int, wanted, most_loss: float
) -> None:
    forced = searched(new_beam(size, wanted, 16), seed)
    beam = searched(new_beam(size, wanted, 16, most_loss=most_loss), seed)
    lacking = [each for each in beam.finished if not holds(tuple(each.target_ids), wanted)]
    assert len(lacking) <= 1
    for each in lacking:
        assert each.finish_reason is FinishReason.EOS
        assert each.log_probability == pytest.approx(sum_of(seed, (*each.target_ids, EOS)))
        others = [other.log_probability for other in beam.finished if other is not each]
        assert all(other < each.log_probability - most_loss * len(wanted) for other in others)
    if not lacking:
        assert all(holds(tuple(each.target_ids), wanted) for each in forced.finished)


@given(
    seed=seeds,
    size=st.integers(2, 6),
    counts=st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(any),
    most_loss=st.just(math.inf) | st.floats(0, 9),
)
def test_what_is_limited_stands_there_as_often_as_it_is_wanted(
    seed: int, size: int, counts: list[int], most_loss: float
) -> None:
    """The tokens 4, 5 and 8 are no part of it, so something else may always follow."""
    forms: list[Form] = [(1,), (2, 6), (3, 7, 6)]
    wanted = tuple((form,) for form, count in zip(forms, counts, strict=True) for _ in range(count))
    at_most = tuple(zip(forms, counts, strict=True))
    beam = searched(new_beam(size, wanted, 40, most_loss=most_loss, at_most=at_most), seed)
    for found in beam.finished:
        ids = tuple(found.target_ids)
        there = [sum(ids[at : at + len(form)] == form for at in range(len(ids))) for form in forms]
        assert all(count <= most for count, most in zip(there, counts, strict=True))
        assert there == counts or not holds(ids, wanted)
        assert holds(ids, wanted) or most_loss < math.inf


def test_a_term_comes_before_what_is_limited() -> None:
    beam = searched(new_beam(3, (((1,),), ((1,),)), 12, at_most=(((1,), 1),)), 7)
    assert all(found.target_ids.count(1) == 2 for found in beam.finished)


def test_where_all_that_may_follow_is_limited_the_search_goes_on() -> None:
    beam = new_beam(2, (((6,),), ((6,),)), 3, at_most=(((1,), 0), ((2,), 0)))
    while not beam.ended:
        beam.advance([Best([1, 2], [-0.1, -0.2], [-9.0] * len(beam.asked_ids(0))) for _ in beam.live])
    assert beam.finished


def test_the_most_probable_hypothesis_goes_on() -> None:
    """However many banks there are: the term that it is about to write may belong there."""
    beam = new_beam(4, (((1, 6, 7, 8),),), 20)
    sure = Best([4, 5, 3, 2, 7, 8, 9, 10], [-0.1, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0])
    for _ in range(5):
        best = []
        for lane, live in enumerate(beam.live):
            own = sure if set(live.ids) <= {4} else sure._replace(log_probabilities=[-90.0 - n for n in range(8)])
            best.append(own._replace(asked=[-30.0] * len(beam.asked_ids(lane))))
        beam.advance(best)
        assert {(4,) * len(beam.live[0].ids)} <= {live.ids for live in beam.live}


def test_how_much_a_term_may_cost() -> None:
    """The model would say 5 and end; 1 is a term that costs 4.6 behind it."""
    for most_loss, expected in ((5.0, (5, 1)), (4.0, (5,))):
        beam = new_beam(2, (((1,),),), 9, most_loss=most_loss)
        while not beam.ended:
            step = []
            for lane, live in enumerate(beam.live):
                ids = {(): [5, 3], (5,): [EOS, 3], (5, 1): [EOS, 3]}.get(live.ids, [3, EOS])
                sure = live.ids in ((), (5,), (5, 1))
                asked = [math.log(0.01) if token == 1 else math.log(0.9) for token in beam.asked_ids(lane)]
                step.append(Best(ids, [math.log(0.99 if sure else 0.1), math.log(0.01)], asked))
            beam.advance(step)
        assert tuple(beam.finished[0].target_ids) == expected


@given(seed=seeds, size=st.integers(2, 6), wanted=terms, most_loss=st.just(math.inf) | st.floats(0, 2))
def test_what_all_hypotheses_share_is_never_taken_back(seed: int, size: int, wanted, most_loss: float) -> None:
    beam = new_beam(size, wanted, 16, most_loss=most_loss)
    told: tuple[int, ...] = ()
    while not beam.ended:
        beam.advance(best_for(beam, seed))
        if not beam.ended:
            common = beam.common_ids(len(told))
            assert common[: len(told)] == told
            told = common
    assert tuple(beam.finished[0].target_ids)[: len(told)] == told


@given(seed=seeds, size=st.integers(2, 6), wanted=terms, count=st.integers(1, 6))
def test_as_many_are_found_as_are_wanted_where_there_is_room(seed: int, size: int, wanted, count: int) -> None:
    assert len(searched(new_beam(size, wanted, 16, count=min(count, size)), seed).finished) >= min(count, size)


def test_the_end_is_asked_for_once_all_terms_are_met() -> None:
    beam = new_beam(2, (((1, 6),),), 9)
    assert beam.asked_ids(0) == [1]
    beam.advance([Best([1, EOS, 4, 5], [-1.0, -1.5, -2.0, -3.0], [-1.0])])
    assert [live.ids for live in beam.live] == [(1,), (4,)]
    assert beam.asked_ids(0) == [1, 6]
    beam.advance([Best([6, 4, 5, 7], [-1.0] * 4, [-5.0, -1.0]), Best([4, 5, 7, 8], [-1.0] * 4, [-5.0])])
    assert beam.live[0].ids == (1, 6)
    assert beam.asked_ids(0) == (EOS,)


def test_the_fullest_bank_goes_on_however_improbable_it_is() -> None:
    beam = new_beam(2, (((1, 6),),), 9)
    beam.advance([Best([4, 5, 7, 8], [-1.0, -1.0, -2.0, -2.0], [-90.0])])
    assert sorted(live.ids for live in beam.live) == [(1,), (4,)]


@pytest.mark.parametrize("prefix", [(1, 6), (4, 1)])
def test_a_prefix_may_hold_a_term_or_its_begin(prefix: tuple[int, ...]) -> None:
    beam = new_beam(2, (((1, 6),),), 9)
    for token in prefix:
        beam.begin_with(token)
    assert beam.asked_ids(0) == ((EOS,) if prefix == (1, 6) else [1, 6])
    for found in searched(beam, 7).finished:
        assert tuple(found.target_ids[:2]) == prefix
        assert holds(tuple(found.target_ids), (((1, 6),),))
        ids = (*found.target_ids, EOS) if found.finish_reason is FinishReason.EOS else found.target_ids
        assert found.log_probability == pytest.approx(sum_of(7, ids, first=2))


def test_a_limit_too_near_for_all_terms_ends_with_most_of_them() -> None:
    beam = searched(new_beam(3, (((1, 6),), ((2, 6, 7),)), 3), 5)
    assert {found.finish_reason for found in beam.finished} == {FinishReason.LENGTH}
    assert all(
        holds(tuple(found.target_ids), (((1, 6),),)) or found.target_ids[:2] == (2, 6) for found in beam.finished
    )


def test_a_search_is_stopped_with_hypotheses_that_hold_all_terms() -> None:
    beam = new_beam(2, (((1, 6),),), 9)
    beam.advance([Best([4, 5, 7, 8], [-1.0, -2.0, -3.0, -4.0], [-2.0])])
    beam.stop()
    assert not beam.ended
    beam.advance([Best([4, 5, 7, 8], [-1.0] * 4, [-50.0] * len(beam.asked_ids(lane))) for lane in range(2)])
    beam.stop()
    assert beam.ended
    assert [(found.target_ids, found.finish_reason) for found in beam.finished] == [((1, 6), FinishReason.REPETITION)]


def test_a_search_is_stopped_with_what_has_ended() -> None:
    beam = new_beam(2, (((1,),),), 9, count=2)
    beam.advance([Best([1, 4, 5, 7], [-1.0, -2.0, -3.0, -4.0])])
    beam.advance([Best([4, 5, 7, 8], [-1.0] * 4, [-0.5]), Best([4, 5, 7, 8], [-1.0] * 4, [-9.0])])
    beam.stop()
    assert beam.ended
    assert [(found.target_ids, found.finish_reason) for found in beam.finished] == [((1,), FinishReason.EOS)]


def test_a_term_that_was_begun_against_the_will_of_the_model_is_not_given_up() -> None:
    beam = new_beam(2, (((1, 6),),), 9)
    beam.advance([Best([4, 5, 7, 8], [-1.0, -2.0, -3.0, -4.0], [-50.0])])
    [lane] = [lane for lane, live in enumerate(beam.live) if live.ids == (1,)]
    step = [Best([4, 5, 7, 8], [-0.1, -2.0, -3.0, -4.0], [-50.0] * 2)] * 2
    beam.advance(step)
    assert (1, 6) in [live.ids for live in beam.live]
    assert (1, 4) not in [live.ids for live in beam.live]
    assert beam.live[lane].ids == (1, 6)


def test_a_term_that_was_begun_so_is_not_given_up_for_what_is_more_probable() -> None:
    beam = new_beam(2, (((1, 6),),), 9)
    beam.advance([Best([4, 5, 7, 8], [-1.0, -2.0, -3.0, -4.0], [-1.5])])
    assert [live.ids for live in beam.live] == [(4,), (1,)]
    beam.advance([Best([4, 5, 7, 8], [-20.0] * 4, [-30.0]), Best([4, 5, 7, 8], [-0.1] * 4, [-30.0, -9.0])])
    assert [live.ids for live in beam.live] == [(4, 1), (1, 6)]


def test_what_the_model_began_itself_may_go_on_otherwise() -> None:
    beam = new_beam(3, (((1, 6),),), 9)
    beam.advance([Best([1, 5, 7, 8, 3, 2], [-1.0, -20.0, -30.0, -40.0, -41.0, -42.0], [-1.0])])
    step = Best([7, 4, 5, 8, 3, 2], [-0.1, -2.0, -3.0, -4.0, -5.0, -6.0])
    beam.advance([step._replace(asked=[-50.0] * len(beam.asked_ids(lane))) for lane in range(3)])
    assert (1, 7) in [live.ids for live in beam.live]


def test_where_the_translation_would_end_only_terms_follow() -> None:
    beam = new_beam(3, (((1, 6),),), 9)
    beam.advance([Best([4, 5, 7, 8, 3, 2], [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], [-5.0])])
    ending = Best([EOS, 4, 5, 7, 8, 3], [-0.6, -1.0, -2.0, -3.0, -4.0, -5.0])
    for _ in range(2):
        beam.advance([ending._replace(asked=[-3.0] * len(beam.asked_ids(lane))) for lane in range(3)])
    assert {live.ids for live in beam.live if live.ids[0] != 1} == {(4, 1, 6), (5, 1, 6)}


def test_where_the_translation_would_have_ended_a_term_goes_on_as_it_began() -> None:
    """The model would write its first token by itself then, but behind it something else."""
    beam = new_beam(2, (((1, 6),),), 9)
    ends = Best([EOS, 1, 5, 7], [-0.5, -3.0, -4.0, -5.0])
    beam.advance([Best([4, 5, 7, 8], [-1.0, -2.0, -3.0, -4.0], [-90.0])])
    beam.advance([ends._replace(asked=[-3.0]), ends._replace(asked=[-90.0] * 2)])
    assert beam.live[0].ids == (4, 1)
    beam.advance([Best([5, 4, 7, 8], [-0.1, -3.0, -4.0, -5.0], [-20.0, -9.0])] * 2)
    assert beam.live[0].ids == (4, 1, 6)


@pytest.mark.parametrize("term", [(1, 6), (1, 6, 7)])
def test_the_begin_of_a_term_that_was_forced_is_no_translation(term: tuple[int, ...]) -> None:
    """The model would end behind each token of the term, and writes its first and last one against its will."""
    beam = new_beam(2, ((term,),), 9, most_loss=5.0)
    while not beam.ended:
        best = []
        for lane, live in enumerate(beam.live):
            found = Best([4, 5, 3, 8], [-1.0, -3.0, -4.0, -5.0])
            if live.ids and live.ids == term[: len(live.ids)]:
                found = Best([EOS, 6, 4, 5], [-0.1, -3.0, -4.0, -5.0])
            values = {1: -3.0, 6: -3.0, term[-1]: -9.0, EOS: -0.1}
            best.append(found._replace(asked=[values[token] for token in beam.asked_ids(lane)]))
        beam.advance(best)
    assert all(holds(tuple(found.target_ids), ((term,),)) for found in beam.finished)


def test_at_the_limit_nothing_without_the_terms_is_beside_what_holds_them() -> None:
    """When it comes, all that holds the term has ended, and what is live has begun with it again."""
    improbable = Best([4, 5, 3, 2], [-20.0] * 4)
    steps = {
        (): improbable._replace(log_probabilities=[-1.0, -2.0, -3.0, -4.0], asked=[-3.0]),
        (1,): improbable._replace(asked=[-20.0, -1.0]),
        (1, 6): improbable._replace(asked=[-20.0, -1.0]),
        (1, 6, 7): Best([6, 7, 8, 9], [-5.0] * 4, [-9.0]),
        (4, 4, 4): improbable._replace(log_probabilities=[-1.0, -2.0, -3.0, -4.0], asked=[-2.0]),
        (4, 4, 4, 1): improbable._replace(asked=[-20.0, -1.0]),
    }
    others = Best([4, 5, 3, 2], [-1.0, -2.0, -3.0, -4.0], [-30.0])
    beam = new_beam(2, (((1, 6, 7),),), 5)
    for _ in range(5):
        assert not beam.ended
        beam.advance([steps.get(live.ids, others) for live in beam.live])
    assert beam.ended
    assert [(found.target_ids, found.finish_reason) for found in beam.finished] == [((1, 6, 7), FinishReason.EOS)]


@given(seed=seeds, size=st.integers(2, 4), limit=st.integers(1, 12))
def test_a_search_for_terms_that_cannot_follow_each_other_ends(seed: int, size: int, limit: int) -> None:
    """Forms that begin inside a word leave no token that leads on."""
    beam = searched(new_beam(size, (((6,),), ((6,),), ((7, 6),)), limit), seed)
    assert beam.finished
