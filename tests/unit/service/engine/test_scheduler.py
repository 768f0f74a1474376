from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle as Pool
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, multiple, rule
from numpy.typing import NDArray

from dragoman.errors import DeadlineExceededError, InternalError
from plugins.sampling.sampling import draw, draws
from service.decode import Decode, DecodeStatus, FinishReason
from service.engine.repetition import FEWEST_TOKENS
from service.engine.scheduler import Scheduler, end_early
from service.engine.step import Asked, Best, Edit, Force, Move, Step
from service.options import SCORING, Decoding, Sampling

EOS = 2
NOW_S = 100.0
SCORED = Decoding(wants_log_probability=True)


class Seen(NamedTuple):
    """What a run has computed by slot; whoever looks at anything else fails."""

    logits: Mapping[int, NDArray[np.floating]] = {}
    attention: Mapping[int, NDArray[np.float32]] = {}

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        return self.logits[slot]

    def attention_of(self, slot: int) -> NDArray[np.float32]:
        return self.attention[slot]


NOTHING = Seen()


def step(
    scheduler: Scheduler,
    ids: Sequence[int | None],
    log_probabilities: Mapping[int, float] | None = None,
    seen: Seen = NOTHING,
    now_s: float = NOW_S,
) -> Step:
    tokens = list(ids)
    scheduler.ask(tokens, seen)
    return scheduler.commit(
        tokens, {slot: Best([], [], [known]) for slot, known in (log_probabilities or {}).items()}, now_s
    )


def decodes_of(scheduler: Scheduler) -> list[Decode]:
    return [row.decode for row in scheduler.active]


def drop(scheduler: Scheduler, now_s: float) -> tuple[list[Decode], list[Edit]]:
    """Takes out of their slots what was cancelled or is late."""
    ended = end_early(decodes_of(scheduler), now_s)
    return ended, scheduler.release()


def running(*limits: int) -> tuple[Scheduler, list[Decode]]:
    """A scheduler whose slots are all taken."""
    scheduler = Scheduler(len(limits), EOS)
    segments = [Decode([EOS], limit) for limit in limits]
    for segment in segments:
        scheduler.admit(segment)
    return scheduler, segments


def test_admission_takes_the_next_slot() -> None:
    scheduler, segments = Scheduler(2, EOS), [Decode([EOS], 9), Decode([EOS], 9)]
    for segment in segments:
        scheduler.admit(segment)
    assert decodes_of(scheduler) == segments
    assert {segment.status for segment in segments} == {DecodeStatus.DECODING}
    assert scheduler.free == 0
    assert set(scheduler.clear()) == set(segments)
    assert (scheduler.active, scheduler.free) == ([], 2)


def test_a_token_is_appended_and_told_only_to_who_wants_it() -> None:
    scheduler, (silent, talkative) = running(9, 9)
    talkative.wants_deltas = True
    result = step(scheduler, [7, 8])
    assert (silent.target_ids, talkative.target_ids) == ([7], [8])
    assert (result.edits, result.progressed, result.target_tokens) == ([], [talkative], 2)


def test_tokens_that_a_translation_begins_with_are_no_part_of_it() -> None:
    marked = Decode([EOS], 2, start_ids=(5, 11, 12), decoding=SCORED)
    scheduler, [segment, other] = Scheduler(2, EOS), [marked, Decode([EOS], 2)]
    segment.wants_deltas = True
    for each in (segment, other):
        scheduler.admit(each)
    first = step(scheduler, [EOS, 7], {0: -1.0})
    assert (first.edits, first.progressed, first.target_tokens) == ([Force(0, 11)], [], 1)
    second = step(scheduler, [9, EOS], {0: -1.0}, now_s=NOW_S + 1)
    assert (second.edits, second.progressed, second.target_tokens) == ([Force(0, 12)], [other], 0)
    assert (segment.target_ids, segment.first_token_s, segment.log_probability) == ([], None, 0.0)
    third = step(scheduler, [9], {0: -2.0}, now_s=NOW_S + 2)
    assert (third.edits, third.progressed, third.target_tokens) == ([], [segment], 1)
    assert (segment.target_ids, segment.first_token_s, segment.log_probability) == ([9], NOW_S + 2, -2.0)
    step(scheduler, [9], {0: -1.0}, now_s=NOW_S + 3)
    assert (segment.finish_reason, scheduler.active) == (FinishReason.LENGTH, [])


def test_a_token_that_is_given_does_not_save_a_segment_from_a_failed_run() -> None:
    scheduler, segment = Scheduler(1, EOS), Decode([EOS], 2, start_ids=(5, 11))
    scheduler.admit(segment)
    result = step(scheduler, [None])
    assert (result.edits, result.progressed, scheduler.active) == ([], [segment], [])
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
    expected = [draw(logits, sampling, chances.random()) for _ in range(6)]
    result = step(scheduler, [7, 7, 7, None], seen=Seen({1: logits}))
    assert result.edits == [Force(1, expected[0]), Force(2, 11)]
    assert (plain.target_ids, drawn.target_ids, begun.target_ids) == ([7], expected[:1], [11])
    assert decodes_of(scheduler) == [plain, drawn, begun]
    # The one that failed has left; the one with a prefix draws for the first time.
    for _ in range(5):
        step(scheduler, [7, 7, 7], seen=Seen({1: logits, 2: logits}))
    assert (drawn.target_ids, begun.target_ids) == (expected, [11, *expected[:5]])
    assert len(set(expected)) > 3


def test_a_translation_that_is_given_is_scored_token_by_token_to_its_end() -> None:
    scheduler = Scheduler(2, EOS)
    scored = Decode([5, EOS], 3, decoding=SCORING, start_ids=(1, 11), scored_ids=(7, 8, EOS))
    for each in (Decode([EOS], 9), scored):
        scheduler.admit(each)
    results = [step(scheduler, [6, 6], {1: log_probability}) for log_probability in (-9.0, -1.0, -2.0, -4.0)]
    assert [result.edits for result in results] == [[Force(1, 11)], [Force(1, 7)], [Force(1, 8)], [Force(1, EOS)]]
    assert (scored.target_ids, scored.finish_reason, scored.decoded_tokens) == ([7, 8], FinishReason.EOS, 3)
    assert (scored.log_probability, scored.token_log_probabilities) == (-7.0, [-1.0, -2.0, -4.0])
    assert scored not in decodes_of(scheduler)


def test_a_given_translation_that_repeats_itself_is_scored_to_its_end() -> None:
    scheduler, [scored] = Scheduler(1, EOS), [Decode([EOS], 41, decoding=SCORING, scored_ids=(7,) * 40 + (EOS,))]
    scheduler.admit(scored)
    while not scored.finished:
        step(scheduler, [6], {0: -1.0})
    assert (len(scored.target_ids), scored.finish_reason, scored.log_probability) == (40, FinishReason.EOS, -41.0)


def test_a_choice_that_fails_ends_its_segment_alone_and_is_told() -> None:
    told: list[Exception] = []
    scheduler = Scheduler(2, EOS, told.append)
    drawn, other = Decode([EOS], 9, decoding=Decoding.of(sampling=Sampling(1))), Decode([EOS], 9)
    for each in (drawn, other):
        scheduler.admit(each)
    assert step(scheduler, [7, 8]).progressed == [drawn]  # there are no logits
    assert isinstance(drawn.error, InternalError)
    assert [type(error) for error in told] == [KeyError]
    assert (decodes_of(scheduler), other.target_ids) == ([other], [8])


def test_the_end_of_sentence_is_no_token() -> None:
    scheduler, [segment] = running(9)
    result = step(scheduler, [EOS])
    assert segment.target_ids == []
    assert (segment.finish_reason, segment.finished_s) == (FinishReason.EOS, NOW_S)
    assert (scheduler.active, result.edits, result.progressed, result.target_tokens) == ([], [], [segment], 0)


def test_the_limit_ends_a_segment_with_its_last_token() -> None:
    scheduler, [segment] = running(2)
    assert step(scheduler, [7]).progressed == []
    assert step(scheduler, [8]).progressed == [segment]
    assert (segment.target_ids, segment.finish_reason) == ([7, 8], FinishReason.LENGTH)


def test_the_first_token_has_its_time() -> None:
    scheduler, [segment] = running(9)
    step(scheduler, [7])
    step(scheduler, [8], now_s=NOW_S + 1)
    assert segment.first_token_s == NOW_S


def test_one_id_a_segment_is_demanded() -> None:
    scheduler, _ = running(9, 9)
    with pytest.raises(ValueError, match="zip"):
        scheduler.commit([7], {}, NOW_S)


def test_the_last_segments_move_into_the_gaps() -> None:
    scheduler, (a, b, c, d, e) = running(1, 9, 1, 9, 9)
    assert step(scheduler, [7] * 5).edits == [Move(4, 2), Move(3, 0)]
    assert (decodes_of(scheduler), scheduler.free) == ([d, b, e], 2)
    assert a.finished
    assert c.finished


def test_a_passed_deadline_ends_a_segment() -> None:
    scheduler, segment = Scheduler(1, EOS), Decode([EOS], 9, deadline_s=NOW_S)
    scheduler.admit(segment)
    step(scheduler, [7], now_s=NOW_S - 1)
    assert drop(scheduler, NOW_S - 1e-6) == ([], [])
    assert drop(scheduler, NOW_S) == ([segment], [])
    assert isinstance(segment.error, DeadlineExceededError)
    assert segment.finish_reason is FinishReason.DEADLINE
    assert "token 2" in segment.error.message
    assert (scheduler.active, scheduler.free) == ([], 1)


def test_a_deadline_that_passed_before_a_slot_was_free_says_so() -> None:
    late, early = Decode([EOS], 9, deadline_s=NOW_S), Decode([EOS], 9, deadline_s=NOW_S + 1e-6)
    assert end_early([early, late, late], NOW_S) == [late]
    assert isinstance(late.error, DeadlineExceededError)
    assert "first token" in late.error.message
    assert not early.finished


@pytest.mark.parametrize(
    ("late_s", "reason"), [(-1, FinishReason.CANCELLED), (0, FinishReason.DEADLINE), (1, FinishReason.DEADLINE)]
)
def test_what_was_cancelled_after_its_deadline_ended_by_it(late_s: float, reason: FinishReason) -> None:
    segment = Decode([EOS], 9, deadline_s=NOW_S, cancel_requested=True)
    assert end_early([segment], NOW_S + late_s) == [segment]
    assert segment.finish_reason is reason


def test_a_segment_on_which_a_graph_fails_ends_alone_and_without_a_token() -> None:
    scheduler, (sound, poisonous) = running(9, 9)
    result = step(scheduler, [7, None])
    assert (result.edits, result.progressed, result.target_tokens) == ([], [poisonous], 1)
    assert isinstance(poisonous.error, InternalError)
    assert (poisonous.target_ids, poisonous.finish_reason, poisonous.first_token_s) == ([], None, None)
    assert decodes_of(scheduler) == [sound]


def test_log_probabilities_are_added_up_with_the_ids() -> None:
    scheduler = Scheduler(3, EOS)
    first, other, last = Decode([EOS], 9, decoding=SCORED), Decode([EOS], 9), Decode([EOS], 2, decoding=SCORED)
    for segment in (first, other, last):
        scheduler.admit(segment)
    assert scheduler.ask([7, 8, None], NOTHING) == {0: Asked(1, (7,))}
    step(scheduler, [7, 7, 7], {0: -0.5, 2: -0.25})
    assert scheduler.ask([EOS, 7, 7], NOTHING) == {0: Asked(1, (EOS,)), 2: Asked(1, (7,))}
    step(scheduler, [EOS, 7, 7], {0: -0.125, 2: -2.0})
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
    step(scheduler, [EOS, 7], {0: -0.5, 1: -0.25})
    assert seen == [-0.5, -0.25]


@pytest.mark.parametrize("stops", [True, False])
def test_a_segment_that_goes_round_in_circles_ends(stops: bool) -> None:
    scheduler, [segment] = running(50)
    segment.decoding = Decoding(stops_at_repetition=stops)
    while not segment.finished:
        step(scheduler, [7])
    assert segment.finish_reason is (FinishReason.REPETITION if stops else FinishReason.LENGTH)
    assert segment.target_ids == [7] * (FEWEST_TOKENS if stops else 50)  # nothing is taken back


def test_the_limit_comes_first() -> None:
    scheduler, [segment] = running(FEWEST_TOKENS)
    segment.decoding = Decoding(stops_at_repetition=True)
    for _ in range(FEWEST_TOKENS):
        step(scheduler, [7])
    assert segment.finish_reason is FinishReason.LENGTH


def test_what_its_source_repeats_a_segment_may_repeat() -> None:
    scheduler, [segment] = running(99)
    segment.decoding, segment.source_ids = Decoding(stops_at_repetition=True), [5] * 20 + [EOS]
    while not segment.finished:
        step(scheduler, [7])
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
    assert drop(scheduler, NOW_S) == ([], [])
    assert decodes_of(scheduler) == [segment]
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
        ended, edits = drop(self.scheduler, self.now_s)
        self._apply(edits)
        free = self.scheduler.free
        arrivals, self.waiting = self.waiting[:free], self.waiting[free:]
        self._note_ends([*ended, *end_early(arrivals, self.now_s)])
        for segment in arrivals:
            if not segment.finished:
                self.scheduler.admit(segment)
                self.rows.append(segment)

    def _decode(self, ids: list[int | None]) -> None:
        active = decodes_of(self.scheduler)
        before = [list(segment.target_ids) for segment in active]
        result = step(self.scheduler, ids, now_s=self.now_s)
        self._apply(result.edits)
        self._note_ends([segment for segment in result.progressed if segment.finished])
        for segment, token, tokens in zip(active, ids, before, strict=True):
            assert segment.target_ids == (tokens if token in (EOS, None) else [*tokens, token])

    def _apply(self, edits: list[Edit]) -> None:
        """What is asked of the owner of the rows."""
        for source, target in edits:
            self.rows[target] = self.rows[source]
        del self.rows[len(self.scheduler.active) :]

    def _note_ends(self, segments: list[Decode]) -> None:
        for segment in segments:
            assert segment.finished
            assert (segment.error is None) is (segment.finish_reason not in (None, FinishReason.DEADLINE))
            self.ends[id(segment)] += 1

    @invariant()
    def rows_follow(self) -> None:
        assert [id(segment) for segment in self.rows] == list(map(id, decodes_of(self.scheduler)))
        assert len(self.rows) + self.scheduler.free == self.slots

    @invariant()
    def every_segment_is_in_one_place(self) -> None:
        places = Counter(map(id, [*self.waiting, *decodes_of(self.scheduler)])) + self.ends
        assert places == Counter(map(id, self.submitted))

    @invariant()
    def what_is_in_a_slot_is_alive_and_below_its_limit(self) -> None:
        for segment in decodes_of(self.scheduler):
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
    first = step(scheduler, [7], {0: -1.0})
    assert (first.edits, first.progressed, segment.target_ids) == ([Force(0, 11)], [], [])
    for token in (21, 22):
        result = step(scheduler, [7], {0: -1.0})
        assert (result.edits, result.progressed, result.target_tokens) == ([Force(0, token)], [segment], 1)
    assert (segment.target_ids, segment.log_probability, segment.decoded_tokens) == ([21, 22], 0.0, 0)
    assert segment.first_token_s is None
    step(scheduler, [8], {0: -1.5}, now_s=NOW_S + 1)
    assert step(scheduler, [EOS], {0: -0.5}, now_s=NOW_S + 2).progressed == [segment]
    assert (segment.target_ids, segment.log_probability, segment.decoded_tokens) == ([21, 22, 8], -2.0, 2)
    assert segment.first_token_s == NOW_S + 1


def test_a_segment_whose_log_probability_cannot_be_computed_ends_alone() -> None:
    scheduler = Scheduler(2, EOS)
    scored, other = Decode([EOS], 9, decoding=SCORED), Decode([EOS], 9)
    for segment in (scored, other):
        scheduler.admit(segment)
    result = step(scheduler, [7, 8])
    assert (result.edits, result.progressed) == ([Move(1, 0)], [scored])
    assert isinstance(scored.error, InternalError)
    assert (scored.target_ids, other.target_ids) == ([], [8])


@pytest.mark.parametrize(
    ("decoding", "scored_ids"),
    [
        (SCORED, ()),
        (SCORING, (7, EOS)),
        (Decoding(wants_attention=True), ()),
        (Decoding.of(sampling=Sampling(3)), ()),
        (Decoding(beam_size=2), ()),
    ],
    ids=["scored", "given", "aligned", "drawn", "searched"],
)
def test_only_segments_that_want_more_than_their_most_probable_tokens_are_asked(
    decoding: Decoding, scored_ids: tuple[int, ...]
) -> None:
    scheduler, asking = Scheduler(3, EOS), Decode([EOS], 9, decoding=decoding, scored_ids=scored_ids)
    for each in (Decode([EOS], 9), asking):
        scheduler.admit(each)
    assert [row.asks for row in scheduler.active] == [False, True]


def test_attention_is_kept_of_each_token_of_the_translation_that_wants_it() -> None:
    scheduler = Scheduler(2, EOS)
    aligned = Decode(
        [5, EOS], 9, start_ids=(5, 11), prefix_ids=(21,), decoding=Decoding(wants_attention=True), wants_deltas=True
    )
    for segment in (aligned, Decode([5, EOS], 9)):
        scheduler.admit(segment)
    rows = [np.array([share, 1 - share], np.float32) for share in (0.0, 0.25, 0.5, 0.75)]
    for token, row in zip([7, 7, 8, EOS], rows, strict=True):
        step(scheduler, [token, 7], seen=Seen(attention={0: row}))
        if not aligned.finished:
            assert len(aligned.attention) == len(aligned.target_ids)
    assert aligned.target_ids == [21, 8]
    np.testing.assert_array_equal(aligned.attention, rows[1:3])
    step(scheduler, [7])  # nobody looks any more


def test_the_end_of_a_search_takes_no_attention_from_others() -> None:
    scheduler, row = Scheduler(3, EOS), np.ones(1, np.float32)
    searched = Decode([EOS], 9, decoding=Decoding(beam_size=2, wants_log_probability=True, wants_attention=True))
    other = Decode([EOS], 9, decoding=Decoding(wants_attention=True))
    for segment in (searched, other):
        scheduler.admit(segment)
    best = Best([7, EOS, 8, 9], [-1.0, -2.0, -3.0, -4.0])
    ends = Best([EOS, 7, 8, 9], [-0.1, -9.0, -9.0, -9.0])
    for found in (best, ends):
        slots = range(len(scheduler.active))
        tokens: list[int | None] = [7 for _ in slots]
        asked = scheduler.ask(tokens, Seen(attention=dict.fromkeys(slots, row)))
        scheduler.commit(tokens, dict.fromkeys(asked, found), NOW_S)
    assert searched.finished
    assert decodes_of(scheduler) == [other]
    assert other.attention == [row, row]
