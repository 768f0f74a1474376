"""The intake before a real mailbox and on a real event loop; the tests themselves play the engine."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from dragoman.errors import DeadlineExceededError, DragomanError, DrainingError, InternalError, QueueFullError
from service.decode import Decode, FinishReason
from service.options import DEFAULT_DECODING, Decoding, Priority, RequestOptions, Sampling
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.segment import Segment
from service.telemetry.metrics import Metrics

EOS = 2
LIMIT = 9
PLENTY = 1_000_000
ROOM = 1_000
LATER_S = time.monotonic() + 1e6
PASSED_S = time.monotonic() - 1


def answer_to(source_ids: list[int]) -> list[int]:
    """What our engine makes of a source: so the owner of a result is known by it."""
    return [token + 100 for token in source_ids[:-1]]


def sure(tokens: int) -> float:
    """How sure our engine is of so many tokens."""
    return -0.5 * tokens


def asks(segment: Segment) -> bool:
    return segment.decode.decoding.wants_log_probability


class PlayedIntake:
    """An intake, its mailbox, and an engine of one slot or many that decodes a token when it is told to."""

    def __init__(self, *, limit_bytes: int = PLENTY, coalesce: bool = True, room: int = ROOM) -> None:
        self.loop = asyncio.new_event_loop()
        self.metrics = Metrics()
        self.mailbox = Mailbox(room)
        self.mailbox.register_worker()
        self.mailbox.bind(self.loop)
        own = self.metrics.of("en-de")
        self.intake = Intake(self.mailbox, own, limit_bytes=limit_bytes, coalesce=coalesce)
        self.running: list[Decode] = []
        self.told: dict[Segment, list[tuple[list[int], bool]]] = {}

    def segment(self, *source_ids: int, **fields) -> Segment:
        limit = fields.pop("limit", LIMIT)
        asked = Decode([*source_ids, EOS], limit, decoding=fields.pop("decoding", DEFAULT_DECODING))
        segment = Segment(asked, RequestOptions(**fields), on_progress=self.hear)
        self.told[segment] = []
        return segment

    def hear(self, segment: Segment) -> None:
        self.told[segment].append((list(segment.decode.target_ids), segment.finished))

    def submit(self, *segments: Segment) -> None:
        """Submits on the loop, as calls do, and has nobody told before all callers are ready."""

        async def submit() -> None:
            told = {segment: list(words) for segment, words in self.told.items()}
            unfinished = self.intake.unfinished, self.mailbox.unfinished
            try:
                self.intake.submit(segments)
            except DragomanError:
                assert (self.intake.unfinished, self.mailbox.unfinished) == unfinished
                raise
            assert self.told == told

        self.loop.run_until_complete(submit())

    def take(self) -> list[Decode]:
        taken = self.mailbox.take(0, 1_000, wait=False) or []
        for segment in taken:
            segment.admitted_s = time.monotonic()
        self.running += taken
        return taken

    def step(self, decode: Decode) -> None:
        """Decodes a token, as the engine does: the commit first, then the word about it."""
        now_s = time.monotonic()
        if decode.first_token_s is None:
            decode.first_token_s = now_s
        answer = answer_to(decode.source_ids)
        if decode.cancel_requested:
            decode.finish(FinishReason.CANCELLED, now_s)
        elif decode.deadline_s is not None and decode.deadline_s <= now_s:
            decode.fail(DeadlineExceededError("the deadline passed"), now_s)
        elif len(decode.target_ids) == len(answer):
            decode.finish(FinishReason.EOS, now_s)
        else:
            decode.target_ids.append(answer[len(decode.target_ids)])
            if len(decode.target_ids) == decode.max_target_tokens:
                decode.finish(FinishReason.LENGTH, now_s)
        if decode.decoding.wants_log_probability and decode.error is None:
            decode.log_probability = sure(decode.decoded_tokens)
        self._deliver(decode)

    def fail(self, decode: Decode, error: DragomanError) -> None:
        decode.fail(error, time.monotonic())
        self._deliver(decode)

    def _deliver(self, decode: Decode) -> None:
        if decode.finished:
            self.running.remove(decode)
        if decode.finished or decode.wants_deltas:
            self.mailbox.deliver([decode])

    def exhaust(self, *decodes: Decode) -> None:
        for decode in decodes:
            while not decode.finished:
                self.step(decode)

    def settle(self) -> None:
        """Lets the event loop tell everything that there is to tell."""
        for _ in range(3):
            self.loop.run_until_complete(asyncio.sleep(0))

    def finish_all(self) -> None:
        self.take()
        self.exhaust(*self.running)
        self.settle()

    def metric(self, name: str) -> float | None:
        return self.metrics.total(name)

    @property
    def counts(self) -> tuple[float | None, float | None, float | None]:
        """Hits, misses, shared."""
        names = "result_cache_hits_total", "result_cache_misses_total", "coalesced_segments_total"
        hits, misses, shared = map(self.metric, names)
        return hits, misses, shared


@pytest.fixture
def played() -> Iterator[PlayedIntake]:
    played = PlayedIntake()
    yield played
    played.loop.close()


def ended(played: PlayedIntake, *segments: Segment) -> bool:
    """Whether each has its answer and was told of it once, and nothing after."""
    return all(
        segment.decode.target_ids == answer_to(segment.decode.source_ids)[: segment.decode.max_target_tokens]
        and segment.decode.log_probability == sure(segment.decode.decoded_tokens) * asks(segment)
        and segment.decode.error is None
        and [finished for _, finished in played.told[segment]].count(True) == 1
        and played.told[segment][-1] == (segment.decode.target_ids, True)
        for segment in segments
    )


def test_a_miss_is_decoded_and_a_hit_is_not(played: PlayedIntake) -> None:
    first = played.segment(3, 4, 5)
    played.submit(first)
    played.finish_all()
    assert ended(played, first)
    again = played.segment(3, 4, 5)
    played.submit(again)
    assert played.mailbox.unfinished == 0
    played.settle()
    assert ended(played, again)
    assert again.decode.finish_reason is FinishReason.EOS
    assert played.counts == (1, 1, 0)


def test_identical_segments_wait_in_the_queue_as_one_and_known_ones_not_at_all(played: PlayedIntake) -> None:
    played.submit(*(played.segment(3, 4, 5) for _ in range(4)))
    assert (len(played.mailbox.waiting), played.mailbox.waiting.load.source_tokens) == (
        1,
        4,
    )  # with the end of sentence
    played.finish_all()
    again = played.segment(3, 4, 5)
    played.submit(again)
    assert len(played.mailbox.waiting) == 0
    assert again.decode.first_token_s == again.submitted_s  # for the time to the first token: 0
    assert played.counts == (1, 1, 3)


def test_the_limit_of_target_tokens_is_part_of_the_question(played: PlayedIntake) -> None:
    for limit, reason in ((2, FinishReason.LENGTH), (LIMIT, FinishReason.EOS), (2, FinishReason.LENGTH)):
        segment = played.segment(3, 4, 5, limit=limit)
        played.submit(segment)
        played.finish_all()
        assert ended(played, segment)
        assert segment.decode.finish_reason is reason
    assert played.counts == (1, 2, 0)


def test_a_result_without_its_log_probability_does_not_answer_who_asks_for_it(played: PlayedIntake) -> None:
    for asks in (False, True, False, True):
        segments = [played.segment(3, 4, 5, decoding=Decoding(wants_log_probability=asks)) for _ in range(2)]
        played.submit(*segments)  # the second time around, nobody has to decode
        played.finish_all()
        assert ended(played, *segments)
        assert {segment.decode.log_probability for segment in segments} == {sure(4) if asks else 0.0}
    assert played.counts == (4, 2, 2)


# What a caller asks for, other than by default; whether another outcome can come of it.
ASKED = {
    "deadline_s": (LATER_S, False),
    "wants_deltas": (True, False),
    "decoding": (Decoding(wants_log_probability=True), True),
    "client": ("another", False),
    "priority": (Priority.BULK, False),
}


@pytest.mark.parametrize("name", sorted(ASKED))
def test_those_share_a_decode_whose_outcome_must_be_the_same(played: PlayedIntake, name: str) -> None:
    value, changes_outcome = ASKED[name]
    played.submit(played.segment(3), played.segment(3, **{name: value}))
    assert played.intake.unfinished == (2 if changes_outcome else 1)


def test_the_same_draws_are_shared_while_they_last_and_are_no_misses(played: PlayedIntake) -> None:
    def segment(seed: int) -> Segment:
        return played.segment(5, decoding=Decoding.of(sampling=Sampling(seed)))

    together = [segment(3), segment(3), segment(4)]
    played.submit(*together)
    decodes = played.take()
    assert len(decodes) == 2
    played.exhaust(*decodes)
    played.submit(segment(3))
    assert len(played.take()) == 1
    assert (played.metrics.total("coalesced_segments_total"), played.metrics.total("result_cache_misses_total")) == (
        1,
        0,
    )


def test_other_ids_or_another_limit_are_another_decode(played: PlayedIntake) -> None:
    played.submit(played.segment(3), played.segment(4), played.segment(3, limit=5))
    assert played.intake.unfinished == 3


def test_identical_segments_of_one_request_and_of_others_are_decoded_once(played: PlayedIntake) -> None:
    segments = [played.segment(3, 4), played.segment(5), played.segment(3, 4)]
    played.submit(*segments)
    other = played.segment(3, 4)
    played.submit(other)
    assert len(played.take()) == 2
    played.finish_all()
    assert ended(played, *segments, other)
    assert played.counts == (0, 2, 2)
    assert played.intake.unfinished == played.mailbox.unfinished == 0


def test_who_joins_a_decode_that_waits_in_a_crowd_does_not_wait_for_the_crowd(played: PlayedIntake) -> None:
    crowd = [played.segment(number, client="a") for number in range(3, 503)]
    played.submit(*crowd)
    alone = played.segment(502, client="b")
    played.submit(alone)
    first = played.mailbox.take(0, 40, wait=False) or []
    assert [502, EOS] in [decode.source_ids for decode in first]
    assert played.intake.unfinished == 500


def test_who_joins_a_decode_of_bulk_does_not_wait_as_long_as_bulk(played: PlayedIntake) -> None:
    played.submit(played.segment(3, priority=Priority.BULK), played.segment(4, priority=Priority.BULK))
    played.submit(played.segment(5), played.segment(4))
    decodes = played.take()
    assert [decode.source_ids[0] for decode in decodes] == [5, 4, 3]
    assert [decode.priority for decode in decodes] == [Priority.INTERACTIVE, Priority.INTERACTIVE, Priority.BULK]


def test_a_decode_that_was_taken_stays_as_it_is(played: PlayedIntake) -> None:
    played.submit(played.segment(3, client="a", priority=Priority.BULK))
    [decode] = played.take()
    played.submit(played.segment(3, client="b"))
    assert (decode.client, decode.priority) == ("a", Priority.BULK)


def test_one_who_leaves_does_not_take_the_others_along(played: PlayedIntake) -> None:
    first, second, third = (played.segment(3, 4) for _ in range(3))
    played.submit(first, second, third)
    [decode] = played.take()
    played.step(decode)
    played.intake.cancel([first])
    assert (first.finished, first.decode.finish_reason) == (True, FinishReason.CANCELLED)
    played.intake.cancel([third, first])
    assert not decode.cancel_requested
    played.finish_all()
    assert ended(played, second)
    assert played.told[first] == played.told[third] == []
    assert first.decode.target_ids == [103], "what was decoded later is not its"


class Counted(RequestOptions):
    """Counts how often anybody asks for its deadline."""

    asked = 0

    @property
    def deadline_s(self) -> float | None:
        Counted.asked += 1
        return LATER_S + 1


def test_to_leave_takes_as_long_however_many_wait(played: PlayedIntake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "asked", 0)
    count, at_once = 10_000, 100
    stays = played.segment(5, deadline_s=LATER_S)
    crowd = [Segment(Decode([5, EOS], LIMIT), Counted()) for _ in range(count)]
    played.submit(stays, *crowd)
    [decode] = played.take()
    for start in range(0, count, at_once):
        played.intake.cancel(crowd[start : start + at_once])
    assert Counted.asked < 20 * count  # each slice that looked at all who stay would make it 50 times that
    assert decode.deadline_s == LATER_S
    played.finish_all()
    assert ended(played, stays)


def test_a_deadline_goes_with_the_last_who_had_it(played: PlayedIntake) -> None:
    first, second, third = (played.segment(5, deadline_s=LATER_S + later) for later in (2, 2, 1))
    played.submit(first, second, third)
    [decode] = played.take()
    played.intake.cancel([first])
    assert decode.deadline_s == LATER_S + 2
    played.intake.cancel([second])
    assert decode.deadline_s == LATER_S + 1
    played.finish_all()
    assert ended(played, third)


def test_the_last_who_leaves_takes_the_decode_along(played: PlayedIntake) -> None:
    waiting, running = played.segment(3), played.segment(4)
    played.submit(running)
    [decode] = played.take()
    played.submit(waiting)
    played.intake.cancel([waiting, running])
    assert len(played.mailbox.waiting) == 0
    assert decode.cancel_requested
    assert played.intake.unfinished == 0
    again = played.segment(4)
    played.submit(again)  # must not join the decode that is being cancelled
    played.finish_all()
    assert ended(played, again)
    assert played.counts == (0, 3, 0)


def test_one_who_leaves_after_the_end_but_before_the_word_is_not_told(played: PlayedIntake) -> None:
    decoded, known = played.segment(3), played.segment(3)
    played.submit(decoded)
    played.take()
    played.exhaust(*played.running)
    played.intake.cancel([decoded])
    played.settle()
    played.submit(played.segment(3))
    played.finish_all()

    async def come_and_go() -> None:
        played.intake.submit([known])
        played.intake.cancel([known])

    played.loop.run_until_complete(come_and_go())
    played.settle()
    assert played.told[decoded] == played.told[known] == []


def test_one_who_joins_late_sees_all_tokens(played: PlayedIntake) -> None:
    early = played.segment(3, 4, 5)
    played.submit(early)
    [decode] = played.take()
    played.step(decode)
    played.step(decode)
    late = played.segment(3, 4, 5, wants_deltas=True)
    played.submit(late)
    assert late.decode.target_ids == [103, 104]
    played.step(decode)
    played.settle()
    played.finish_all()
    assert played.told[late] == [([103, 104, 105], False), ([103, 104, 105], True)]
    assert played.told[early] == [([103, 104, 105], True)]


def test_only_who_wants_deltas_is_told_of_them_and_the_engine_only_while_someone_does(played: PlayedIntake) -> None:
    quiet, curious = played.segment(3, 4, 5), played.segment(3, 4, 5, wants_deltas=True)
    played.submit(quiet, curious)
    [decode] = played.take()
    assert decode.wants_deltas
    played.step(decode)
    played.settle()
    assert played.told == {quiet: [], curious: [([103], False)]}
    played.intake.cancel([curious])
    assert not decode.wants_deltas
    played.finish_all()
    assert ended(played, quiet)


def test_the_end_may_show_when_a_token_is_told(played: PlayedIntake) -> None:
    segment = played.segment(3, wants_deltas=True)
    played.submit(segment)
    [decode] = played.take()
    played.exhaust(decode)  # all words are on their way before the first arrives
    played.settle()
    assert ended(played, segment)
    assert played.intake.unfinished == 0


def test_a_decode_has_the_latest_deadline_of_those_who_wait(played: PlayedIntake) -> None:
    soon, late, never = (played.segment(3, deadline_s=deadline_s) for deadline_s in (LATER_S, LATER_S + 1, None))
    played.submit(soon)
    [decode] = played.take()
    assert decode.deadline_s == LATER_S
    played.submit(late)
    assert decode.deadline_s == LATER_S + 1
    played.submit(never)
    assert decode.deadline_s is None
    played.intake.cancel([never])
    assert decode.deadline_s == LATER_S + 1
    played.intake.cancel([late])
    assert decode.deadline_s == LATER_S


def test_a_passed_deadline_is_said_and_not_remembered(played: PlayedIntake) -> None:
    segment = played.segment(3, deadline_s=PASSED_S)
    played.submit(segment)
    played.finish_all()
    assert isinstance(segment.decode.error, DeadlineExceededError)
    assert played.told[segment] == [([], True)]
    again = played.segment(3)
    played.submit(again)
    played.finish_all()
    assert ended(played, again)
    assert played.counts == (0, 2, 0)


def test_who_joins_just_as_the_engine_gives_up_is_decoded_all_the_same(played: PlayedIntake) -> None:
    hasty, patient, second = (played.segment(3, deadline_s=deadline_s) for deadline_s in (PASSED_S, None, LATER_S))
    played.submit(hasty)
    [decode] = played.take()
    played.step(decode)  # the engine has given up, the loop does not know yet
    played.intake.submit([patient, second])
    assert patient.decode is second.decode is decode
    played.settle()
    assert isinstance(hasty.decode.error, DeadlineExceededError)
    assert played.told[hasty] == [([], True)]
    played.finish_all()
    assert ended(played, patient, second)
    assert played.intake.unfinished == played.mailbox.unfinished == 0


def test_a_decode_that_is_begun_again_may_be_joined(played: PlayedIntake) -> None:
    hasty, patient, late = (played.segment(3, deadline_s=deadline_s) for deadline_s in (PASSED_S, LATER_S, None))
    played.submit(hasty)
    played.step(*played.take())
    played.intake.submit([patient, late])
    played.settle()
    [again] = played.take()
    third = played.segment(3)
    played.submit(third)
    assert patient.decode is late.decode is third.decode is again
    played.finish_all()
    assert ended(played, patient, late, third)


def test_and_is_refused_where_the_mailbox_has_closed_meanwhile(played: PlayedIntake) -> None:
    hasty, patient = played.segment(3, deadline_s=PASSED_S), played.segment(3)
    played.submit(hasty)
    played.step(*played.take())
    played.intake.submit([patient])
    played.mailbox.close()
    played.settle()
    assert isinstance(patient.decode.error, DrainingError)
    assert played.told[patient] == [([], True)]
    assert played.intake.unfinished == 0


def test_an_error_goes_to_all_who_wait_and_is_not_remembered(played: PlayedIntake) -> None:
    segments = [played.segment(3), played.segment(3)]
    played.submit(*segments)
    [decode] = played.take()
    played.fail(decode, error := InternalError("planted"))
    played.settle()
    assert [segment.decode.error for segment in segments] == [error, error]
    assert [played.told[segment] for segment in segments] == [[([], True)]] * 2
    again = played.segment(3)
    played.submit(again)
    played.finish_all()
    assert ended(played, again)


@pytest.mark.parametrize("refusal", [QueueFullError, DrainingError, InternalError])
def test_a_refusal_is_whole_and_leaves_nothing_attached(refusal: type[DragomanError]) -> None:
    played = PlayedIntake(room=4)
    known, flying = played.segment(3), played.segment(4)
    played.submit(known)
    played.finish_all()
    played.submit(flying)
    if refusal is DrainingError:
        played.mailbox.close()
    elif refusal is InternalError:
        assert len(played.take()) == 1
        played.mailbox.fail(InternalError("the engine has stopped"))
    refused = [played.segment(3), played.segment(4), played.segment(5, 6, 7), played.segment(5, 6, 7)]
    counts = played.counts
    with pytest.raises(refusal):
        played.submit(*refused)
    assert played.counts == counts
    assert played.intake.unfinished == 1
    assert all(not segment.finished and segment.submitted_s is None for segment in refused)
    played.finish_all()
    assert ended(played, flying)
    assert all(played.told[segment] == [] for segment in refused)
    played.loop.close()


def test_what_is_known_or_in_decode_needs_no_room_in_the_queue() -> None:
    played = PlayedIntake(room=4)
    played.submit(played.segment(3))
    played.finish_all()
    played.submit(played.segment(4, 5, 6))
    more = [played.segment(3), played.segment(4, 5, 6)]
    played.submit(*more)
    played.finish_all()
    assert ended(played, *more)
    played.loop.close()


def test_a_failing_listener_does_not_keep_the_news_from_others(played: PlayedIntake) -> None:
    def fail(_: Segment) -> None:
        raise ValueError("planted")

    faults: list[object] = []
    played.loop.set_exception_handler(lambda _, context: faults.append(context.get("exception")))
    failing, healthy = played.segment(3), played.segment(3)
    failing.on_progress = fail
    played.submit(failing, healthy)
    played.finish_all()
    assert ended(played, healthy)
    assert [type(fault) for fault in faults] == [ValueError]


def test_no_time_is_before_the_submission(played: PlayedIntake) -> None:
    early = played.segment(3, 4)
    played.submit(early)
    [decode] = played.take()
    played.step(decode)
    late = played.segment(3, 4)
    played.submit(late)
    played.finish_all()
    hit = played.segment(3, 4)
    played.submit(hit)
    for segment in (early, hit):
        own = segment.decode
        times = [segment.submitted_s, own.admitted_s, own.first_token_s, own.finished_s]
        assert None not in times
        assert times == sorted(times)
    assert early.decode is late.decode is decode
    assert decode.finished_s >= late.submitted_s
    assert hit.decode.first_token_s == hit.submitted_s


def test_engine_time_saved_is_counted(played: PlayedIntake) -> None:
    segments = [played.segment(3), played.segment(3), played.segment(3)]
    played.submit(*segments)
    [decode] = played.take()
    played.exhaust(decode)
    played.settle()
    engine_s = decode.finished_s - decode.admitted_s
    assert played.metric("coalesced_saved_seconds_total") == pytest.approx(2 * engine_s)
    played.submit(played.segment(3))
    assert played.metric("result_cache_saved_seconds_total") == pytest.approx(engine_s)


def test_without_room_for_results_decodes_are_shared_all_the_same() -> None:
    played = PlayedIntake(limit_bytes=0)
    for _ in range(2):
        segments = [played.segment(3), played.segment(3)]
        played.submit(*segments)
        assert len(played.take()) == 1
        played.finish_all()
        assert ended(played, *segments)
    assert played.counts == (0, 0, 2)
    assert played.intake.results.size_bytes == 0
    played.loop.close()


def test_without_sharing_results_are_kept_all_the_same() -> None:
    played = PlayedIntake(coalesce=False)
    segments = [played.segment(3), played.segment(3)]
    played.submit(*segments)
    assert len(played.take()) == 2
    played.intake.cancel(segments[:1])
    played.finish_all()
    assert ended(played, segments[1])
    hit = played.segment(3)
    played.submit(hit)
    played.settle()
    assert ended(played, hit)
    assert played.counts == (1, 2, 0)
    played.loop.close()


@pytest.mark.parametrize("asks", [False, True])
def test_the_books_count_at_least_what_the_interpreter_does(asks: bool) -> None:
    played = PlayedIntake(room=1_000_000, limit_bytes=100_000_000)

    decoding = Decoding(wants_log_probability=asks)

    def decode(firsts: range) -> None:
        for first in firsts:
            played.intake.submit([Segment(Decode([first, first, EOS], LIMIT, decoding=decoding))])
            played.exhaust(*played.take())
            played.settle()

    decode(range(300, 310))
    tracemalloc.start()
    try:
        gc.collect()  # empties the lists of free objects, too, whose use tracemalloc does not count
        before_bytes, counted_bytes = tracemalloc.get_traced_memory()[0], played.intake.results.size_bytes
        decode(range(400, 550))
        gc.collect()
        held_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    finally:
        tracemalloc.stop()
    assert 0.6 < held_bytes / (played.intake.results.size_bytes - counted_bytes) <= 1
    assert played.metric("result_cache_bytes") == played.intake.results.size_bytes
    played.loop.close()


class Waiter(NamedTuple):
    """A caller's segment in the machine below, and what became of it there."""

    segment: Segment
    fate: list[str]  # "cancelled", if it was


class Machine(RuleBasedStateMachine):
    """Callers and an engine in any order. The model: every waiter gets its own answer once, unless it left."""

    def __init__(self) -> None:
        super().__init__()
        self.played = PlayedIntake(limit_bytes=3_000, room=12)
        self.waiters: list[Waiter] = []
        self.poisoned: set[tuple[int, ...]] = set()

    submitted = Bundle("submitted")

    @rule(
        target=submitted,
        sources=st.lists(st.lists(st.integers(3, 4), max_size=3), min_size=1, max_size=4),
        limit=st.sampled_from([1, LIMIT]),
        wants_deltas=st.booleans(),
        deadline_s=st.sampled_from([None, None, LATER_S, PASSED_S]),
        asks=st.booleans(),
    )
    def submit(self, sources, limit, wants_deltas, deadline_s, asks):
        fields = {
            "limit": limit,
            "wants_deltas": wants_deltas,
            "deadline_s": deadline_s,
            "decoding": Decoding(wants_log_probability=asks),
        }
        segments = [self.played.segment(*source, **fields) for source in sources]
        try:
            self.played.submit(*segments)
        except QueueFullError:
            assert all(segment.submitted_s is None for segment in segments)
            return multiple()
        waiters = [Waiter(segment, []) for segment in segments]
        self.waiters += waiters
        return multiple(*waiters)

    @rule(waiter=consumes(submitted))
    def leave(self, waiter):
        self.played.intake.cancel([waiter.segment])
        waiter.fate.append("cancelled")
        self.played.told[waiter.segment].append(([], "left"))

    @rule()
    def take(self):
        self.played.take()

    @rule(data=st.data())
    def step(self, data):
        if self.played.running:
            self.played.step(data.draw(st.sampled_from(self.played.running)))

    @rule(data=st.data())
    def fail(self, data):
        if self.played.running:
            decode = data.draw(st.sampled_from(self.played.running))
            self.played.fail(decode, InternalError("planted"))

    @rule()
    def settle(self):
        self.played.settle()

    @invariant()
    def bytes_are_bounded_and_said(self):
        assert self.played.intake.results.size_bytes <= 3_000
        assert self.played.metric("result_cache_bytes") == self.played.intake.results.size_bytes

    @invariant()
    def a_decode_is_on_its_way_for_someone(self):
        waiting = [waiter for waiter in self.waiters if not waiter.segment.finished]
        assert self.played.intake.unfinished <= len(waiting)
        questions = {
            (tuple(decode.source_ids), decode.max_target_tokens, decode.decoding.wants_log_probability)
            for decode in (waiter.segment.decode for waiter in waiting)
        }
        assert len(questions) == self.played.intake.unfinished

    @invariant()
    def what_was_decoded_is_the_beginning_of_the_answer(self):
        for segment, _ in self.waiters:
            answer = answer_to(segment.decode.source_ids)[: segment.decode.max_target_tokens]
            assert segment.decode.target_ids == answer[: len(segment.decode.target_ids)]

    def teardown(self):
        self.played.settle()
        while self.played.running or len(self.played.mailbox.waiting):
            self.played.finish_all()
        for segment, fate in self.waiters:
            words = self.played.told[segment]
            assert segment.finished
            if fate:
                assert words[-1][1] == "left", "nobody is told who has left"
            elif segment.decode.error is None:
                assert ended(self.played, segment)
            else:
                assert [finished for _, finished in words].count(True) == 1
                assert isinstance(segment.decode.error, InternalError) or segment.options.deadline_s == PASSED_S
        assert self.played.intake.unfinished == self.played.mailbox.unfinished == 0
        self.played.loop.close()


TestMachine = Machine.TestCase
TestMachine.settings = settings(stateful_step_count=40)
