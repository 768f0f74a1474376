from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle as Pool
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, multiple, rule

from dragoman.errors import DeadlineExceededError, InternalError
from service.decode import Decode, DecodeStatus, FinishReason
from service.engine.beam import Best
from service.engine.repetition import FEWEST_TOKENS
from service.engine.sampling import draw, draws
from service.engine.scheduler import Move, Scheduler
from service.engine.selection import Selection
from service.options import SCORING, Decoding, Sampling

EOS = 2
NOW_S = 100.0
SCORED = Decoding(wants_log_probability=True)


def chosen(ids: list[int | None], log_probabilities: dict[int, float] | None = None) -> Selection:
    return Selection(ids, {slot: Best([], [], [known]) for slot, known in (log_probabilities or {}).items()})


def scored_by(tokens: list[int | None], taken: dict[int, int], log_probabilities: dict[int, float]) -> Selection:
    """What a step gives where some tokens are not left to the graph."""
    return chosen(tokens, log_probabilities)._replace(chosen=taken)


def running(*limits: int) -> tuple[Scheduler, list[Decode]]:
    """A scheduler whose slots are all taken."""
    scheduler = Scheduler(len(limits), EOS)
    segments = [Decode([EOS], limit) for limit in limits]
    for segment in segments:
        scheduler.plan([segment], NOW_S)
        scheduler.admit(segment)
    return scheduler, segments


def test_admission_takes_the_next_slot() -> None:
    scheduler, segments = Scheduler(2, EOS), [Decode([EOS], 9), Decode([EOS], 9)]
    plan = scheduler.plan(segments, NOW_S)
    assert plan.moves == plan.ended == []
    assert plan.admitted == segments
    assert {(segment.status, segment.admitted_s) for segment in segments} == {(DecodeStatus.ENCODING, NOW_S)}
    assert scheduler.free == 2  # planned is not admitted
    assert [scheduler.admit(segment) for segment in segments] == [0, 1]
    assert {segment.status for segment in segments} == {DecodeStatus.DECODING}
    assert scheduler.free == 0


def test_a_token_is_appended_and_told_only_to_who_wants_it() -> None:
    scheduler, (silent, talkative) = running(9, 9)
    talkative.wants_deltas = True
    result = scheduler.commit(chosen([7, 8]), NOW_S)
    assert (silent.target_ids, talkative.target_ids) == ([7], [8])
    assert (result.moves, result.progressed, result.tokens) == ([], [talkative], 2)


def test_tokens_that_a_translation_begins_with_are_no_part_of_it() -> None:
    marked = Decode([EOS], 2, start_ids=(5, 11, 12), decoding=SCORED)
    scheduler, [segment, other] = Scheduler(2, EOS), [marked, Decode([EOS], 2)]
    segment.wants_deltas = True
    for each in (segment, other):
        scheduler.admit(each)
    first = scheduler.commit(chosen([EOS, 7], {0: -1.0}), NOW_S)
    assert (first.forced, first.progressed, first.tokens) == ([(0, 11)], [], 1)
    second = scheduler.commit(chosen([9, EOS], {0: -1.0}), NOW_S + 1)
    assert (second.forced, second.moves, second.tokens) == ([(0, 12)], [(1, 1)], 0)
    assert (segment.target_ids, segment.first_token_s, segment.log_probability) == ([], None, 0.0)
    third = scheduler.commit(chosen([9], {0: -2.0}), NOW_S + 2)
    assert (third.forced, third.progressed, third.tokens) == ([], [segment], 1)
    assert (segment.target_ids, segment.first_token_s, segment.log_probability) == ([9], NOW_S + 2, -2.0)
    assert scheduler.commit(chosen([9], {0: -1.0}), NOW_S + 3).moves == [(0, 0)]
    assert segment.finish_reason is FinishReason.LENGTH


def test_a_token_that_is_given_does_not_save_a_segment_from_a_failed_run() -> None:
    scheduler, segment = Scheduler(1, EOS), Decode([EOS], 2, start_ids=(5, 11))
    scheduler.admit(segment)
    result = scheduler.commit(chosen([None]), NOW_S)
    assert (result.forced, result.moves) == ([], [(0, 0)])
    assert isinstance(segment.error, InternalError)


def test_tokens_are_drawn_for_segments_that_want_it_once_for_each_that_they_choose() -> None:
    scheduler, sampling = Scheduler(4, EOS), Sampling(3, temperature=2.0)
    plain, drawn, begun, failed = (
        Decode([EOS], 9, decoding=Decoding.of(sampling=wanted), prefix_ids=prefix)
        for wanted, prefix in ((None, ()), (sampling, ()), (sampling, (11,)), (sampling, ()))
    )
    for segment in (plain, drawn, begun, failed):
        scheduler.admit(segment)
    logits = np.arange(20, dtype=np.float32) % 7
    chances = draws(sampling)
    first, second = (draw(logits, sampling, chances.random()) for _ in range(2))
    found = scheduler.choose([7, 7, 7, None], lambda slot: logits)
    assert found == {1: first}
    result = scheduler.commit(Selection([7, first, 7, None], chosen=found), NOW_S)
    assert result.forced == [(1, first), (2, 11)]
    assert (plain.target_ids, drawn.target_ids, begun.target_ids) == ([7], [first], [11])
    # The one that failed has left; the one with a prefix draws for the first time.
    assert scheduler.choose([7, 7, 7], lambda slot: logits) == {1: second, 2: first}


def test_a_translation_that_is_given_is_scored_token_by_token_to_its_end() -> None:
    scheduler = Scheduler(2, EOS)
    scored = Decode([5, EOS], 3, decoding=SCORING, start_ids=(1, 11), scored_ids=(7, 8, EOS))
    for each in (Decode([EOS], 9), scored):
        scheduler.admit(each)
    results = []
    for log_probability in (-9.0, -1.0, -2.0, -4.0):
        chosen = scheduler.choose([6, 6], lambda slot: pytest.fail("asked for"))
        tokens = [6, chosen.get(1, 6)]
        results.append(scheduler.commit(scored_by(tokens, chosen, {1: log_probability}), NOW_S))
    assert [result.forced for result in results] == [[(1, 11)], [(1, 7)], [(1, 8)], [(1, EOS)]]
    assert (scored.target_ids, scored.finish_reason, scored.decoded_tokens) == ([7, 8], FinishReason.EOS, 3)
    assert (scored.log_probability, scored.token_log_probabilities) == (-7.0, [-1.0, -2.0, -4.0])
    assert results[-1].moves == [(1, 1)]


def test_a_given_translation_that_repeats_itself_is_scored_to_its_end() -> None:
    scheduler, [scored] = Scheduler(1, EOS), [Decode([EOS], 41, decoding=SCORING, scored_ids=(7,) * 40 + (EOS,))]
    scheduler.admit(scored)
    while not scored.finished:
        chosen = scheduler.choose([6], lambda slot: pytest.fail("asked for"))
        scheduler.commit(scored_by([chosen[0]], chosen, {0: -1.0}), NOW_S)
    assert (len(scored.target_ids), scored.finish_reason, scored.log_probability) == (40, FinishReason.EOS, -41.0)


def test_logits_are_asked_for_where_tokens_are_drawn_alone_and_by_nobody_who_has_left() -> None:
    scheduler, _ = running(9, 9)
    assert scheduler.choose([7, 7], lambda slot: pytest.fail("asked for")) == {}
    scheduler.clear()
    for each in (Decode([EOS], 1, decoding=Decoding.of(sampling=Sampling(1))), Decode([EOS], 9)):
        scheduler.admit(each)
    chosen = scheduler.choose([7, 7], lambda slot: np.zeros(9) if slot == 0 else pytest.fail("asked for"))
    scheduler.commit(Selection([*chosen.values(), 7], chosen=chosen), NOW_S)
    assert scheduler.choose([7], lambda slot: pytest.fail("asked for")) == {}


def test_the_end_of_sentence_is_no_token() -> None:
    scheduler, [segment] = running(9)
    result = scheduler.commit(chosen([EOS]), NOW_S)
    assert segment.target_ids == []
    assert (segment.finish_reason, segment.finished_s) == (FinishReason.EOS, NOW_S)
    assert (result.moves, result.progressed, result.tokens) == ([(0, 0)], [segment], 0)


def test_the_limit_ends_a_segment_with_its_last_token() -> None:
    scheduler, [segment] = running(2)
    assert scheduler.commit(chosen([7]), NOW_S).moves == []
    assert scheduler.commit(chosen([8]), NOW_S).moves == [(0, 0)]
    assert (segment.target_ids, segment.finish_reason) == ([7, 8], FinishReason.LENGTH)


def test_the_first_token_has_its_time() -> None:
    scheduler, [segment] = running(9)
    scheduler.commit(chosen([7]), NOW_S)
    scheduler.commit(chosen([8]), NOW_S + 1)
    assert segment.first_token_s == NOW_S


def test_one_id_a_segment_is_demanded() -> None:
    scheduler, _ = running(9, 9)
    with pytest.raises(ValueError, match="zip"):
        scheduler.commit(chosen([7]), NOW_S)


def test_the_last_segments_move_into_the_gaps() -> None:
    scheduler, (a, b, c, d, e) = running(1, 9, 1, 9, 9)
    result = scheduler.commit(chosen([7] * 5), NOW_S)
    assert result.moves == [(4, 2), (3, 0)]
    assert scheduler.active == [d, b, e]
    assert a.finished
    assert c.finished


@pytest.mark.parametrize("arrived", [True, False], ids=["on arrival", "in a slot"])
def test_a_passed_deadline_ends_a_segment(arrived: bool) -> None:
    scheduler = Scheduler(1, EOS)
    segment = Decode([EOS], 9, deadline_s=NOW_S)
    if not arrived:
        scheduler.plan([segment], NOW_S - 1)
        scheduler.admit(segment)
        scheduler.commit(chosen([7]), NOW_S - 1)
    plan = scheduler.plan([segment] if arrived else [], NOW_S)
    assert isinstance(segment.error, DeadlineExceededError)
    assert segment.finish_reason is FinishReason.DEADLINE
    assert ("first token" if arrived else "token 2") in segment.error.message
    assert (plan.moves, plan.ended, plan.admitted) == ([] if arrived else [(0, 0)], [segment], [])


def test_a_deadline_to_come_ends_nothing() -> None:
    scheduler, segment = Scheduler(1, EOS), Decode([EOS], 9, deadline_s=NOW_S)
    assert scheduler.plan([segment], NOW_S - 1e-6).admitted == [segment]


@pytest.mark.parametrize(
    ("late_s", "reason"), [(-1, FinishReason.CANCELLED), (0, FinishReason.DEADLINE), (1, FinishReason.DEADLINE)]
)
def test_what_was_cancelled_after_its_deadline_ended_by_it(late_s: float, reason: FinishReason) -> None:
    scheduler, segment = Scheduler(1, EOS), Decode([EOS], 9, deadline_s=NOW_S, cancel_requested=True)
    assert scheduler.plan([segment], NOW_S + late_s).ended == [segment]
    assert segment.finish_reason is reason
    assert segment.admitted_s is None


def test_a_segment_on_which_a_graph_fails_ends_alone_and_without_a_token() -> None:
    scheduler, (sound, poisonous) = running(9, 9)
    result = scheduler.commit(chosen([7, None]), NOW_S)
    assert (result.moves, result.progressed, result.tokens) == ([(1, 1)], [poisonous], 1)
    assert isinstance(poisonous.error, InternalError)
    assert (poisonous.target_ids, poisonous.finish_reason, poisonous.first_token_s) == ([], None, None)
    assert scheduler.active == [sound]


def test_log_probabilities_are_added_up_with_the_ids() -> None:
    scheduler = Scheduler(3, EOS)
    first, other, last = Decode([EOS], 9, decoding=SCORED), Decode([EOS], 9), Decode([EOS], 2, decoding=SCORED)
    for segment in (first, other, last):
        scheduler.admit(segment)
    assert scheduler.asked([7, 8, None]) == ({0: (7,)}, 1)
    scheduler.commit(chosen([7, 7, 7], {0: -0.5, 2: -0.25}), NOW_S)
    assert scheduler.asked([EOS, 7, 7]) == ({0: (EOS,), 2: (7,)}, 1)
    scheduler.commit(chosen([EOS, 7, 7], {0: -0.125, 2: -2.0}), NOW_S)
    assert [segment.log_probability for segment in (first, other, last)] == [-0.625, 0.0, -2.25]
    assert (first.decoded_tokens, last.decoded_tokens) == (2, 2)


def test_whoever_sees_the_end_sees_all_of_its_log_probability() -> None:
    """Another thread may look as soon as the status says so."""
    seen: list[float] = []

    class Watched(Decode):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if value is DecodeStatus.FINISHED:
                seen.append(self.log_probability)

    scheduler = Scheduler(2, EOS)
    for segment in (Watched([EOS], 9, decoding=SCORED), Watched([EOS], 1, decoding=SCORED)):
        scheduler.admit(segment)
    scheduler.commit(chosen([EOS, 7], {0: -0.5, 1: -0.25}), NOW_S)
    assert seen == [-0.5, -0.25]


@pytest.mark.parametrize("stops", [True, False])
def test_a_segment_that_goes_round_in_circles_ends(stops: bool) -> None:
    scheduler, [segment] = running(50)
    segment.decoding = Decoding(stops_at_repetition=stops)
    while not segment.finished:
        scheduler.commit(chosen([7]), NOW_S)
    assert segment.finish_reason is (FinishReason.REPETITION if stops else FinishReason.LENGTH)
    assert segment.target_ids == [7] * (FEWEST_TOKENS if stops else 50)  # nothing is taken back


def test_the_limit_comes_first() -> None:
    scheduler, [segment] = running(FEWEST_TOKENS)
    segment.decoding = Decoding(stops_at_repetition=True)
    for _ in range(FEWEST_TOKENS):
        scheduler.commit(chosen([7]), NOW_S)
    assert segment.finish_reason is FinishReason.LENGTH


def test_what_its_source_repeats_a_segment_may_repeat() -> None:
    scheduler, [segment] = running(99)
    segment.decoding, segment.source_ids = Decoding(stops_at_repetition=True), [5] * 20 + [EOS]
    while not segment.finished:
        scheduler.commit(chosen([7]), NOW_S)
    assert (segment.finish_reason, len(segment.target_ids)) == (FinishReason.REPETITION, 41)


class Moving(Decode):
    """Its deadline is moved by another thread after each look at it."""

    @property
    def deadline_s(self) -> float | None:
        return self.deadlines_s.pop(0) if len(self.deadlines_s) > 1 else self.deadlines_s[0]

    @deadline_s.setter
    def deadline_s(self, value: list[float | None]) -> None:
        self.deadlines_s = value


@pytest.mark.parametrize("later_s", [None, NOW_S + 1])
def test_a_deadline_that_moves_while_it_is_looked_at_loses_nobody(later_s: float | None) -> None:
    scheduler = Scheduler(1, EOS)
    segment = Moving([EOS], 9, deadline_s=[NOW_S - 1, later_s])
    scheduler.admit(segment)
    plan = scheduler.plan([], NOW_S)
    assert (plan.moves, plan.ended, scheduler.active) == ([], [], [segment])
    assert not segment.finished


class SchedulerMachine(RuleBasedStateMachine):
    """Any order of arrivals, cancellations, deadlines and tokens, beside rows that repeat the moves."""

    segments = Pool("segments")

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Decode] = []  # what lies in the buffers' rows
        self.waiting: list[Decode] = []
        self.submitted: list[Decode] = []
        self.ends: Counter[int] = Counter()  # by identity
        self.now_s = 0.0
        self.start(1)

    @initialize(slots=st.integers(1, 6))
    def start(self, slots: int) -> None:
        self.slots = slots
        self.scheduler = Scheduler(slots, EOS)

    @rule(
        target=segments,
        limit=st.integers(1, 4),
        lasts_s=st.none() | st.integers(0, 6),
        count=st.integers(1, 4),
    )
    def submit(self, limit: int, lasts_s: int | None, count: int):
        deadline_s = None if lasts_s is None else self.now_s + lasts_s
        new = [Decode([EOS], limit, deadline_s) for _ in range(count)]
        self.waiting += new
        self.submitted += new
        return multiple(*new)

    @rule(segment=segments)
    def cancel(self, segment: Decode) -> None:
        segment.cancel_requested = True

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        self.now_s += 1
        self._admit()
        size = len(self.scheduler.active)
        self._decode(data.draw(st.lists(st.sampled_from([EOS, 7, 8, None]), min_size=size, max_size=size)))

    def _admit(self) -> None:
        free = self.scheduler.free
        arrivals, self.waiting = self.waiting[:free], self.waiting[free:]
        plan = self.scheduler.plan(arrivals, self.now_s)
        self._release(plan.moves)
        self._note_ends(plan.ended)
        for segment in plan.admitted:
            assert self.scheduler.admit(segment) == len(self.rows)
            self.rows.append(segment)

    def _decode(self, ids: list[int | None]) -> None:
        active = list(self.scheduler.active)
        before = [list(segment.target_ids) for segment in active]
        result = self.scheduler.commit(chosen(ids), self.now_s)
        self._release(result.moves)
        self._note_ends([segment for segment in result.progressed if segment.finished])
        for segment, token, tokens in zip(active, ids, before, strict=True):
            assert segment.target_ids == (tokens if token in (EOS, None) else [*tokens, token])

    def _release(self, moves: list[Move]) -> None:
        """What is asked of the owner of the rows."""
        for source, target in moves:
            assert source == len(self.rows) - 1
            self.rows[target] = self.rows[source]
            self.rows.pop()

    def _note_ends(self, segments: list[Decode]) -> None:
        for segment in segments:
            assert segment.finished
            assert (segment.error is None) is (segment.finish_reason not in (None, FinishReason.DEADLINE))
            self.ends[id(segment)] += 1

    @invariant()
    def rows_follow(self) -> None:
        assert [id(segment) for segment in self.rows] == [id(segment) for segment in self.scheduler.active]
        assert len(self.rows) + self.scheduler.free == self.slots

    @invariant()
    def every_segment_is_in_one_place(self) -> None:
        places = Counter(map(id, [*self.waiting, *self.scheduler.active])) + self.ends
        assert places == Counter(map(id, self.submitted))

    @invariant()
    def what_is_in_a_slot_is_alive_and_below_its_limit(self) -> None:
        for segment in self.scheduler.active:
            assert segment.status is DecodeStatus.DECODING
            assert len(segment.target_ids) < segment.max_target_tokens

    def teardown(self) -> None:
        """Everything ends within its limit, whatever happened before."""
        for _ in range(5 * len(self.submitted)):
            self._admit()
            self._decode([7] * len(self.scheduler.active))
        assert self.ends == Counter(map(id, self.submitted))


TestSchedulerMachine = SchedulerMachine.TestCase


def test_a_prefix_is_part_of_a_translation_and_counts_for_no_score() -> None:
    scheduler = Scheduler(1, EOS)
    segment = Decode([EOS], 4, start_ids=(5, 11), prefix_ids=(21, 22), wants_deltas=True, decoding=SCORED)
    scheduler.admit(segment)
    first = scheduler.commit(chosen([7], {0: -1.0}), NOW_S)
    assert (first.forced, first.progressed, segment.target_ids) == ([(0, 11)], [], [])
    for token in (21, 22):
        step = scheduler.commit(chosen([7], {0: -1.0}), NOW_S)
        assert (step.forced, step.progressed, step.tokens) == ([(0, token)], [segment], 1)
    assert (segment.target_ids, segment.log_probability, segment.decoded_tokens) == ([21, 22], 0.0, 0)
    assert segment.first_token_s is None
    scheduler.commit(chosen([8], {0: -1.5}), NOW_S + 1)
    assert scheduler.commit(chosen([EOS], {0: -0.5}), NOW_S + 2).progressed == [segment]
    assert (segment.target_ids, segment.log_probability, segment.decoded_tokens) == ([21, 22, 8], -2.0, 2)
    assert segment.first_token_s == NOW_S + 1


def test_a_segment_whose_log_probability_cannot_be_computed_ends_alone() -> None:
    scheduler = Scheduler(2, EOS)
    scored, other = Decode([EOS], 9, decoding=SCORED), Decode([EOS], 9)
    for segment in (scored, other):
        scheduler.admit(segment)
    result = scheduler.commit(chosen([7, 8]), NOW_S)
    assert (result.moves, result.progressed) == ([(1, 0)], [scored])
    assert isinstance(scored.error, InternalError)
    assert (scored.target_ids, other.target_ids) == ([], [8])


@pytest.mark.parametrize(
    "decoding",
    [SCORED, SCORING, Decoding(wants_attention=True), Decoding.of(sampling=Sampling(3)), Decoding(beam_size=2)],
    ids=["scored", "given", "aligned", "drawn", "searched"],
)
def test_a_step_is_plain_unless_a_segment_asks_for_more_than_its_most_probable_tokens(decoding: Decoding) -> None:
    scheduler, plain, asking = Scheduler(3, EOS), Decode([EOS], 9), Decode([EOS], 9, decoding=decoding)
    scheduler.admit(plain)
    assert scheduler.is_plain
    scheduler.admit(asking)
    assert not scheduler.is_plain
    asking.cancel_requested = True
    scheduler.plan([], NOW_S)
    assert scheduler.is_plain


def test_attention_is_kept_of_each_token_of_the_translation_that_wants_it() -> None:
    scheduler = Scheduler(2, EOS)
    aligned = Decode(
        [5, EOS], 9, start_ids=(5, 11), prefix_ids=(21,), decoding=Decoding(wants_attention=True), wants_deltas=True
    )
    for segment in (aligned, Decode([5, EOS], 9)):
        scheduler.admit(segment)
    rows = [np.array([step, 1 - step], np.float32) for step in (0.0, 0.25, 0.5, 0.75)]
    for token, row in zip([7, 7, 8, EOS], rows, strict=True):
        assert scheduler.aligned() == [0]
        scheduler.commit(Selection([token, 7], {}, {0: row}), NOW_S)
        if not aligned.finished:
            assert len(aligned.attention) == len(aligned.target_ids)
    assert (aligned.target_ids, scheduler.aligned()) == ([21, 8], [])
    np.testing.assert_array_equal(aligned.attention, rows[1:3])


def test_the_end_of_a_search_takes_no_attention_from_others() -> None:
    scheduler, row = Scheduler(3, EOS), np.ones(1, np.float32)
    searched = Decode([EOS], 9, decoding=Decoding(beam_size=2, wants_log_probability=True, wants_attention=True))
    other = Decode([EOS], 9, decoding=Decoding(wants_attention=True))
    for segment in (searched, other):
        scheduler.admit(segment)
    best = Best([7, EOS, 8, 9], [-1.0, -2.0, -3.0, -4.0])
    ends = Best([EOS, 7, 8, 9], [-0.1, -9.0, -9.0, -9.0])
    for found in (best, ends):
        assert scheduler.aligned() == list(range(len(scheduler.active)))
        slots = range(len(scheduler.active))
        best_of = {slot: found for slot in slots if scheduler.active[slot] is searched}
        scheduler.commit(Selection([7 for _ in slots], best_of, dict.fromkeys(slots, row)), NOW_S)
    assert searched.finished
    assert (scheduler.active, scheduler.aligned()) == ([other], [0])
