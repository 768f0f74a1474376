"""The result cache before a real mailbox and on a real event loop; the tests themselves play the engine."""

import asyncio
import dataclasses
import time
import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from dragoman.errors import DeadlineExceededError, DragomanError, DrainingError, InternalError, QueueFullError
from service.options import Decoding, Priority
from service.queue.mailbox import Mailbox
from service.queue.result_cache import ResultCache
from service.segment import FinishReason, Segment, SegmentStatus
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


class House:
    """A cache, its mailbox, and an engine of one slot or many that decodes a token when it is told to."""

    def __init__(self, *, limit_bytes: int = PLENTY, coalesce: bool = True, room: int = ROOM) -> None:
        self.loop = asyncio.new_event_loop()
        self.metrics = Metrics()
        self.mailbox = Mailbox(room)
        self.mailbox.register_worker()
        self.mailbox.bind(self.loop)
        own = self.metrics.of("en-de")
        self.cache = ResultCache(self.mailbox, self.loop, own, limit_bytes=limit_bytes, coalesce=coalesce)
        self.running: list[Segment] = []
        self.told: dict[Segment, list[tuple[list[int], bool]]] = {}

    def segment(self, *source_ids: int, **fields) -> Segment:
        limit = fields.pop("limit", LIMIT)
        segment = Segment([*source_ids, EOS], limit, on_progress=self.hear, **fields)
        self.told[segment] = []
        return segment

    def hear(self, segment: Segment) -> None:
        self.told[segment].append((list(segment.target_ids), segment.finished))

    def submit(self, *segments: Segment) -> None:
        """Submits on the loop, as calls do, and has nobody told before all callers are ready."""

        async def submit() -> None:
            told = {segment: list(words) for segment, words in self.told.items()}
            self.cache.submit(segments)
            assert self.told == told

        self.loop.run_until_complete(submit())

    def take(self) -> list[Segment]:
        taken = self.mailbox.take(0, 1_000, wait=False) or []
        for segment in taken:
            segment.admitted_s = time.monotonic()
        self.running += taken
        return taken

    def step(self, leader: Segment) -> None:
        """Decodes a token, as the engine does: the commit first, then the word about it."""
        now_s = time.monotonic()
        if leader.first_token_s is None:
            leader.first_token_s = now_s
        answer = answer_to(leader.source_ids)
        if leader.cancel_requested:
            leader.finish(FinishReason.CANCELLED, now_s)
        elif leader.deadline_s is not None and leader.deadline_s <= now_s:
            leader.fail(DeadlineExceededError("the deadline passed"), now_s)
        elif len(leader.target_ids) == len(answer):
            leader.finish(FinishReason.EOS, now_s)
        else:
            leader.target_ids.append(answer[len(leader.target_ids)])
            if len(leader.target_ids) == leader.max_target_tokens:
                leader.finish(FinishReason.LENGTH, now_s)
        if leader.decoding.wants_log_probability and leader.error is None:
            leader.log_probability = sure(leader.decoded_tokens)
        self._deliver(leader)

    def fail(self, leader: Segment, error: DragomanError) -> None:
        leader.fail(error, time.monotonic())
        self._deliver(leader)

    def _deliver(self, leader: Segment) -> None:
        if leader.finished:
            self.running.remove(leader)
        if leader.finished or leader.wants_deltas:
            self.mailbox.deliver([leader])

    def exhaust(self, *leaders: Segment) -> None:
        for leader in leaders:
            while not leader.finished:
                self.step(leader)

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
def house() -> Iterator[House]:
    house = House()
    yield house
    house.loop.close()


def ended(house: House, *segments: Segment) -> bool:
    """Whether each has its answer and was told of it once, and nothing after."""
    return all(
        segment.target_ids == answer_to(segment.source_ids)[: segment.max_target_tokens]
        and segment.log_probability == (sure(segment.decoded_tokens) if segment.decoding.wants_log_probability else 0.0)
        and segment.error is None
        and [finished for _, finished in house.told[segment]].count(True) == 1
        and house.told[segment][-1] == (segment.target_ids, True)
        for segment in segments
    )


def test_a_miss_is_decoded_and_a_hit_is_not(house: House) -> None:
    first = house.segment(3, 4, 5)
    house.submit(first)
    house.finish_all()
    assert ended(house, first)
    again = house.segment(3, 4, 5)
    house.submit(again)
    assert house.mailbox.unfinished == 0
    house.settle()
    assert ended(house, again)
    assert again.finish_reason is FinishReason.EOS
    assert house.counts == (1, 1, 0)


def test_identical_segments_wait_in_the_queue_as_one_and_known_ones_not_at_all(house: House) -> None:
    house.submit(*(house.segment(3, 4, 5) for _ in range(4)))
    assert (house.mailbox.queued_segments, house.mailbox.queued_source_tokens) == (1, 4)  # with the end of sentence
    house.finish_all()
    again = house.segment(3, 4, 5)
    house.submit(again)
    assert house.mailbox.queued_segments == 0
    assert again.first_token_s == again.submitted_s  # for the time to the first token: 0
    assert house.counts == (1, 1, 3)


def test_the_limit_of_target_tokens_is_part_of_the_question(house: House) -> None:
    for limit, reason in ((2, FinishReason.LENGTH), (LIMIT, FinishReason.EOS), (2, FinishReason.LENGTH)):
        segment = house.segment(3, 4, 5, limit=limit)
        house.submit(segment)
        house.finish_all()
        assert ended(house, segment)
        assert segment.finish_reason is reason
    assert house.counts == (1, 2, 0)


def test_a_result_without_its_log_probability_does_not_answer_who_asks_for_it(house: House) -> None:
    for asks in (False, True, False, True):
        segments = [house.segment(3, 4, 5, decoding=Decoding(wants_log_probability=asks)) for _ in range(2)]
        house.submit(*segments)  # the second time around, nobody has to decode
        house.finish_all()
        assert ended(house, *segments)
        assert {segment.log_probability for segment in segments} == {sure(4) if asks else 0.0}
    assert house.counts == (4, 2, 2)


# What a caller asks for with each field, other than by default; whether another outcome can come of it.
ASKED = {
    "source_ids": ([3, 4, EOS], True),
    "max_target_tokens": (5, True),
    "deadline_s": (LATER_S, False),
    "wants_deltas": (True, False),
    "decoding": (Decoding(wants_log_probability=True), True),
    "client": ("another", False),
    "priority": (Priority.BULK, False),
    "text_bytes": (7, False),
}


def test_a_leader_asks_for_all_that_its_caller_does(house: House) -> None:
    names = [field.name for field in dataclasses.fields(Segment)]
    assert set(names[: names.index("target_ids")]) == {*ASKED, "on_progress"}, "what callers fill comes first"
    segment = Segment(**{name: value for name, (value, _) in ASKED.items()})
    house.submit(segment)
    [leader] = house.take()
    for name in ASKED:
        assert getattr(leader, name) == getattr(segment, name)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_those_share_a_flight_whose_outcome_must_be_the_same(house: House, name: str) -> None:
    value, changes_outcome = ASKED[name]
    fields = {"source_ids": [3, EOS], "max_target_tokens": LIMIT}
    house.submit(Segment(**fields), Segment(**{**fields, name: value}))
    assert house.cache.flights == (2 if changes_outcome else 1)


def test_identical_segments_of_one_request_and_of_others_are_decoded_once(house: House) -> None:
    segments = [house.segment(3, 4), house.segment(5), house.segment(3, 4)]
    house.submit(*segments)
    other = house.segment(3, 4)
    house.submit(other)
    assert len(house.take()) == 2
    house.finish_all()
    assert ended(house, *segments, other)
    assert house.counts == (0, 2, 2)
    assert house.cache.flights == house.mailbox.unfinished == 0


def test_who_joins_a_leader_that_waits_in_a_crowd_does_not_wait_for_the_crowd(house: House) -> None:
    crowd = [house.segment(number, client="a") for number in range(3, 503)]
    house.submit(*crowd)
    alone = house.segment(502, client="b")
    house.submit(alone)
    first = house.mailbox.take(0, 40, wait=False) or []
    assert [502, EOS] in [leader.source_ids for leader in first]
    assert house.cache.flights == 500


def test_who_joins_a_leader_of_bulk_does_not_wait_as_long_as_bulk(house: House) -> None:
    house.submit(house.segment(3, priority=Priority.BULK), house.segment(4, priority=Priority.BULK))
    house.submit(house.segment(5), house.segment(4))
    leaders = house.take()
    assert [leader.source_ids[0] for leader in leaders] == [5, 4, 3]
    assert [leader.priority for leader in leaders] == [Priority.INTERACTIVE, Priority.INTERACTIVE, Priority.BULK]


def test_a_leader_that_was_taken_stays_as_it_is(house: House) -> None:
    house.submit(house.segment(3, client="a", priority=Priority.BULK))
    [leader] = house.take()
    house.submit(house.segment(3, client="b"))
    assert (leader.client, leader.priority) == ("a", Priority.BULK)


def test_one_who_leaves_does_not_take_the_others_along(house: House) -> None:
    first, second, third = (house.segment(3, 4) for _ in range(3))
    house.submit(first, second, third)
    [leader] = house.take()
    house.step(leader)
    house.cache.cancel([first])
    assert (first.status, first.finish_reason) == (SegmentStatus.CANCELLED, FinishReason.CANCELLED)
    house.cache.cancel([third, first])
    assert not leader.cancel_requested
    house.finish_all()
    assert ended(house, second)
    assert house.told[first] == house.told[third] == []
    assert first.target_ids == [103], "what was decoded later is not its"


class Counted(Segment):
    """Counts how often anybody asks for its deadline."""

    asked = 0

    @property
    def deadline_s(self) -> float | None:
        Counted.asked += 1
        return Segment.deadline_s.__get__(self)

    @deadline_s.setter
    def deadline_s(self, value: float | None) -> None:
        Segment.deadline_s.__set__(self, value)


def test_to_leave_takes_as_long_however_many_wait_for_the_same(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "asked", 0)
    count, at_once = 10_000, 100
    stays = house.segment(5, deadline_s=LATER_S)
    crowd = [Counted([5, EOS], LIMIT, deadline_s=LATER_S + 1) for _ in range(count)]
    house.submit(stays, *crowd)
    [leader] = house.take()
    for start in range(0, count, at_once):
        house.cache.cancel(crowd[start : start + at_once])
    assert Counted.asked < 20 * count  # each slice that looked at all who stay would make it 50 times that
    assert leader.deadline_s == LATER_S
    house.finish_all()
    assert ended(house, stays)


def test_a_deadline_goes_with_the_last_who_had_it(house: House) -> None:
    first, second, third = (house.segment(5, deadline_s=LATER_S + later) for later in (2, 2, 1))
    house.submit(first, second, third)
    [leader] = house.take()
    house.cache.cancel([first])
    assert leader.deadline_s == LATER_S + 2
    house.cache.cancel([second])
    assert leader.deadline_s == LATER_S + 1
    house.finish_all()
    assert ended(house, third)


def test_the_last_who_leaves_takes_the_leader_along(house: House) -> None:
    waiting, running = house.segment(3), house.segment(4)
    house.submit(running)
    [leader] = house.take()
    house.submit(waiting)
    house.cache.cancel([waiting, running])
    assert house.mailbox.queued_segments == 0
    assert leader.cancel_requested
    assert house.cache.flights == 0
    again = house.segment(4)
    house.submit(again)  # must not join the leader that is being cancelled
    house.finish_all()
    assert ended(house, again)
    assert house.counts == (0, 3, 0)


def test_one_who_leaves_after_the_end_but_before_the_word_is_not_told(house: House) -> None:
    decoded, known = house.segment(3), house.segment(3)
    house.submit(decoded)
    house.take()
    house.exhaust(*house.running)
    house.cache.cancel([decoded])
    house.settle()
    house.submit(house.segment(3))
    house.finish_all()

    async def come_and_go() -> None:
        house.cache.submit([known])
        house.cache.cancel([known])

    house.loop.run_until_complete(come_and_go())
    house.settle()
    assert house.told[decoded] == house.told[known] == []


def test_one_who_joins_late_sees_all_tokens(house: House) -> None:
    early = house.segment(3, 4, 5)
    house.submit(early)
    [leader] = house.take()
    house.step(leader)
    house.step(leader)
    late = house.segment(3, 4, 5, wants_deltas=True)
    house.submit(late)
    assert late.target_ids == [103, 104]
    house.step(leader)
    house.settle()
    house.finish_all()
    assert house.told[late] == [([103, 104, 105], False), ([103, 104, 105], True)]
    assert house.told[early] == [([103, 104, 105], True)]


def test_only_who_wants_deltas_is_told_of_them_and_the_engine_only_while_someone_does(house: House) -> None:
    quiet, curious = house.segment(3, 4, 5), house.segment(3, 4, 5, wants_deltas=True)
    house.submit(quiet, curious)
    [leader] = house.take()
    assert leader.wants_deltas
    house.step(leader)
    house.settle()
    assert house.told == {quiet: [], curious: [([103], False)]}
    house.cache.cancel([curious])
    assert not leader.wants_deltas
    house.finish_all()
    assert ended(house, quiet)


def test_the_end_may_show_when_a_token_is_told(house: House) -> None:
    segment = house.segment(3, wants_deltas=True)
    house.submit(segment)
    [leader] = house.take()
    house.exhaust(leader)  # all words are on their way before the first arrives
    house.settle()
    assert ended(house, segment)
    assert house.cache.flights == 0


def test_a_leader_has_the_latest_deadline_of_those_who_wait(house: House) -> None:
    soon, late, never = (house.segment(3, deadline_s=deadline_s) for deadline_s in (LATER_S, LATER_S + 1, None))
    house.submit(soon)
    [leader] = house.take()
    assert leader.deadline_s == LATER_S
    house.submit(late)
    assert leader.deadline_s == LATER_S + 1
    house.submit(never)
    assert leader.deadline_s is None
    house.cache.cancel([never])
    assert leader.deadline_s == LATER_S + 1
    house.cache.cancel([late])
    assert leader.deadline_s == LATER_S


def test_a_passed_deadline_is_said_and_not_remembered(house: House) -> None:
    segment = house.segment(3, deadline_s=PASSED_S)
    house.submit(segment)
    house.finish_all()
    assert isinstance(segment.error, DeadlineExceededError)
    assert house.told[segment] == [([], True)]
    again = house.segment(3)
    house.submit(again)
    house.finish_all()
    assert ended(house, again)
    assert house.counts == (0, 2, 0)


def test_who_joins_just_as_the_engine_gives_up_is_decoded_all_the_same(house: House) -> None:
    hasty, patient, second = (house.segment(3, deadline_s=deadline_s) for deadline_s in (PASSED_S, None, LATER_S))
    house.submit(hasty)
    [leader] = house.take()
    house.step(leader)  # the engine has given up, the loop does not know yet

    async def join() -> None:
        house.cache.submit([patient, second])

    house.loop.run_until_complete(join())
    house.settle()
    assert isinstance(hasty.error, DeadlineExceededError)
    assert house.told[hasty] == [([], True)]
    house.finish_all()
    assert ended(house, patient, second)
    assert house.cache.flights == house.mailbox.unfinished == 0


def test_and_is_refused_where_the_mailbox_has_closed_meanwhile(house: House) -> None:
    hasty, patient = house.segment(3, deadline_s=PASSED_S), house.segment(3)
    house.submit(hasty)
    house.step(*house.take())
    house.cache.submit([patient])
    house.mailbox.close()
    house.settle()
    assert isinstance(patient.error, DrainingError)
    assert house.told[patient] == [([], True)]
    assert house.cache.flights == 0


def test_an_error_goes_to_all_who_wait_and_is_not_remembered(house: House) -> None:
    segments = [house.segment(3), house.segment(3)]
    house.submit(*segments)
    [leader] = house.take()
    house.fail(leader, error := InternalError("planted"))
    house.settle()
    assert [segment.error for segment in segments] == [error, error]
    assert [house.told[segment] for segment in segments] == [[([], True)]] * 2
    again = house.segment(3)
    house.submit(again)
    house.finish_all()
    assert ended(house, again)


@pytest.mark.parametrize("refusal", [QueueFullError, DrainingError, InternalError])
def test_a_refusal_is_whole_and_leaves_nothing_attached(refusal: type[DragomanError]) -> None:
    house = House(room=4)
    known, flying = house.segment(3), house.segment(4)
    house.submit(known)
    house.finish_all()
    house.submit(flying)
    if refusal is DrainingError:
        house.mailbox.close()
    elif refusal is InternalError:
        assert len(house.take()) == 1
        house.mailbox.fail(InternalError("the engine has stopped"))
    refused = [house.segment(3), house.segment(4), house.segment(5, 6, 7), house.segment(5, 6, 7)]
    counts = house.counts
    with pytest.raises(refusal):
        house.submit(*refused)
    assert house.counts == counts
    assert house.cache.flights == 1
    assert all(segment.status is SegmentStatus.WAITING and segment.submitted_s is None for segment in refused)
    house.finish_all()
    assert ended(house, flying)
    assert all(house.told[segment] == [] for segment in refused)
    house.loop.close()


def test_what_is_known_or_in_flight_needs_no_room_in_the_queue() -> None:
    house = House(room=4)
    house.submit(house.segment(3))
    house.finish_all()
    house.submit(house.segment(4, 5, 6))
    more = [house.segment(3), house.segment(4, 5, 6)]
    house.submit(*more)
    house.finish_all()
    assert ended(house, *more)
    house.loop.close()


def test_a_failing_listener_does_not_keep_the_news_from_others(house: House) -> None:
    def fail(_: Segment) -> None:
        raise ValueError("planted")

    faults: list[object] = []
    house.loop.set_exception_handler(lambda _, context: faults.append(context.get("exception")))
    failing, healthy = house.segment(3), house.segment(3)
    failing.on_progress = fail
    house.submit(failing, healthy)
    house.finish_all()
    assert ended(house, healthy)
    assert [type(fault) for fault in faults] == [ValueError]


def test_no_time_is_before_the_submission(house: House) -> None:
    early = house.segment(3, 4)
    house.submit(early)
    [leader] = house.take()
    house.step(leader)
    late = house.segment(3, 4)
    house.submit(late)
    house.finish_all()
    hit = house.segment(3, 4)
    house.submit(hit)
    for segment in (early, late, hit):
        times = [segment.submitted_s, segment.admitted_s, segment.first_token_s, segment.finished_s]
        assert None not in times
        assert times == sorted(times)
    assert (early.first_token_s, early.finished_s) == (leader.first_token_s, leader.finished_s)
    assert hit.first_token_s == hit.submitted_s


def test_engine_time_saved_is_counted(house: House) -> None:
    segments = [house.segment(3), house.segment(3), house.segment(3)]
    house.submit(*segments)
    [leader] = house.take()
    house.exhaust(leader)
    house.settle()
    engine_s = leader.finished_s - leader.admitted_s
    assert house.metric("coalesced_saved_seconds_total") == pytest.approx(2 * engine_s)
    house.submit(house.segment(3))
    assert house.metric("result_cache_saved_seconds_total") == pytest.approx(engine_s)


def test_without_room_for_results_flights_are_shared_all_the_same() -> None:
    house = House(limit_bytes=0)
    for _ in range(2):
        segments = [house.segment(3), house.segment(3)]
        house.submit(*segments)
        assert len(house.take()) == 1
        house.finish_all()
        assert ended(house, *segments)
    assert house.counts == (0, 0, 2)
    assert house.cache.size_bytes == 0
    house.loop.close()


def test_without_sharing_results_are_kept_all_the_same() -> None:
    house = House(coalesce=False)
    segments = [house.segment(3), house.segment(3)]
    house.submit(*segments)
    assert len(house.take()) == 2
    house.cache.cancel(segments[:1])
    house.finish_all()
    assert ended(house, segments[1])
    hit = house.segment(3)
    house.submit(hit)
    house.settle()
    assert ended(house, hit)
    assert house.counts == (1, 2, 0)
    house.loop.close()


@pytest.mark.parametrize("asks", [False, True])
def test_the_books_count_at_least_what_the_interpreter_does(asks: bool) -> None:
    house = House(room=1_000_000, limit_bytes=100_000_000)

    def decode(firsts: range) -> None:
        for first in firsts:
            house.cache.submit([Segment([first, first, EOS], LIMIT, decoding=Decoding(wants_log_probability=asks))])
            house.exhaust(*house.take())
            house.settle()

    decode(range(300, 310))
    tracemalloc.start()
    try:
        before_bytes, counted_bytes = tracemalloc.get_traced_memory()[0], house.cache.size_bytes
        decode(range(400, 1_400))
        held_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    finally:
        tracemalloc.stop()
    assert 0.6 < held_bytes / (house.cache.size_bytes - counted_bytes) <= 1
    assert house.metric("result_cache_bytes") == house.cache.size_bytes
    house.loop.close()


class Waiter(NamedTuple):
    """A caller's segment in the machine below, and what became of it there."""

    segment: Segment
    fate: list[str]  # "cancelled", if it was


class Machine(RuleBasedStateMachine):
    """Callers and an engine in any order. The model: every waiter gets its own answer once, unless it left."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House(limit_bytes=3_000, room=12)
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
        segments = [self.house.segment(*source, **fields) for source in sources]
        flights, unfinished = self.house.cache.flights, self.house.mailbox.unfinished
        try:
            self.house.cache.submit(segments)
        except QueueFullError:
            assert (self.house.cache.flights, self.house.mailbox.unfinished) == (flights, unfinished)
            assert all(segment.submitted_s is None for segment in segments)
            return multiple()
        waiters = [Waiter(segment, []) for segment in segments]
        self.waiters += waiters
        return multiple(*waiters)

    @rule(waiter=consumes(submitted))
    def leave(self, waiter):
        self.house.cache.cancel([waiter.segment])
        waiter.fate.append("cancelled")
        self.house.told[waiter.segment].append(([], "left"))

    @rule()
    def take(self):
        self.house.take()

    @rule(data=st.data())
    def step(self, data):
        if self.house.running:
            self.house.step(data.draw(st.sampled_from(self.house.running)))

    @rule(data=st.data())
    def fail(self, data):
        if self.house.running:
            leader = data.draw(st.sampled_from(self.house.running))
            self.house.fail(leader, InternalError("planted"))

    @rule()
    def settle(self):
        self.house.settle()

    @invariant()
    def bytes_are_bounded_and_said(self):
        assert self.house.cache.size_bytes <= 3_000
        assert self.house.metric("result_cache_bytes") == self.house.cache.size_bytes

    @invariant()
    def a_leader_is_in_flight_for_someone(self):
        waiting = [waiter for waiter in self.waiters if not waiter.segment.finished]
        assert self.house.cache.flights <= len(waiting)
        questions = {
            (tuple(segment.source_ids), segment.max_target_tokens, segment.decoding.wants_log_probability)
            for segment, _ in waiting
        }
        assert len(questions) == self.house.cache.flights

    @invariant()
    def what_was_decoded_is_the_beginning_of_the_answer(self):
        for segment, _ in self.waiters:
            answer = answer_to(segment.source_ids)[: segment.max_target_tokens]
            assert segment.target_ids == answer[: len(segment.target_ids)]

    def teardown(self):
        self.house.settle()
        while self.house.running or self.house.mailbox.queued_segments:
            self.house.finish_all()
        for segment, fate in self.waiters:
            words = self.house.told[segment]
            assert segment.finished
            if fate:
                assert words[-1][1] == "left", "nobody is told who has left"
            elif segment.error is None:
                assert ended(self.house, segment)
            else:
                assert [finished for _, finished in words].count(True) == 1
                assert isinstance(segment.error, InternalError) or segment.deadline_s == PASSED_S
        assert self.house.cache.flights == self.house.mailbox.unfinished == 0
        assert not self.house.cache._awaited
        assert not self.house.cache._joinable
        self.house.loop.close()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
