"""Whose segment is next, by rule and beside plain books."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from service.decode import Decode
from service.options import Decoding, Priority
from service.queue.fair_queue import BULK_SHARE, QUANTUM, FairQueue, Load

INTERACTIVE, BULK = Priority
LONGEST = 100
LENGTHS = st.integers(1, LONGEST)


def segments(client: str, *lengths: int, priority: Priority = INTERACTIVE) -> list[Decode]:
    return [Decode([2] * length, 9, client=client, priority=priority, text_bytes=3 * length) for length in lengths]


def filled(*queued: list[Decode]) -> FairQueue:
    queue = FairQueue()
    for each in queued:
        queue.push(each)
    return queue


def clients(taken: list[Decode]) -> str:
    return "".join(segment.client for segment in taken)


def tokens_of(taken: list[Decode]) -> int:
    return sum(len(segment.source_ids) for segment in taken)


def test_one_client_is_served_in_order_of_arrival() -> None:
    own = segments("a", 5, 99, 1, 30, 2)
    queue = filled(own[:3], own[3:])
    assert queue.take(2) + queue.take(9) == own
    assert queue.take(1) == []


def test_who_comes_waits_for_one_turn_of_each_other_client() -> None:
    queue = filled(segments("a", *[10] * 10_000), segments("b", *[10] * 10_000))
    queue.take(1_000)
    queue.push(segments("c", 10))
    before = clients(queue.take(20)).index("c") * 10
    assert before <= 2 * (QUANTUM + 10)


def test_a_turn_is_counted_in_tokens() -> None:
    queue = filled(segments("a", *[QUANTUM] * 9), segments("b", *[QUANTUM // 4] * 36))
    assert clients(queue.take(15)) == "abbbb" * 3


def test_who_spends_less_than_a_turn_has_more_in_the_next() -> None:
    length = QUANTUM * 3 // 4
    queue = filled(segments("a", *[length] * 9), segments("b", *[length] * 9))
    assert clients(queue.take(16)) == "ababaabb" * 2


@given(data=st.data())
def test_nobody_gets_more_than_another_who_waits_by_more_than_a_turn_and_a_segment(data: st.DataObject) -> None:
    names = "abc"[: data.draw(st.integers(2, 3))]
    queue = filled(*(segments(name, *data.draw(st.lists(LENGTHS, min_size=20, max_size=20))) for name in names))
    got = Counter[str]()
    while all(queue.load_of(name, INTERACTIVE).source_tokens for name in names):
        [segment] = queue.take(1)
        got[segment.client] += len(segment.source_ids)
        assert max(got[name] for name in names) - min(got[name] for name in names) <= 2 * (QUANTUM + LONGEST)


def test_interactive_goes_first() -> None:
    queue = filled(segments("a", 10, 10, priority=BULK), segments("b", 10, 10))
    assert clients(queue.take(9)) == "bbaa"


@given(st.lists(LENGTHS, min_size=200, max_size=200), st.lists(LENGTHS, min_size=200, max_size=200))
def test_bulk_gets_its_share_and_no_more_while_both_wait(interactive: list[int], bulk: list[int]) -> None:
    queue = filled(segments("a", *bulk, priority=BULK), segments("b", *interactive))
    got = Counter[Priority]()
    while queue.source_tokens_of(INTERACTIVE) and queue.source_tokens_of(BULK):
        [segment] = queue.take(1)
        got[segment.priority] += len(segment.source_ids)
        owed = got[INTERACTIVE] - (BULK_SHARE - 1) * got[BULK]
        assert -BULK_SHARE * LONGEST <= owed <= BULK_SHARE * LONGEST


def test_what_interactive_ones_get_is_owed_to_bulk_that_waits_and_to_no_other() -> None:
    queue = filled(segments("b", *[10] * 100))
    queue.take(50)
    queue.push(segments("a", *[10] * 9, priority=BULK))
    assert clients(queue.take(10)) == "b" * (BULK_SHARE - 1) + "a"
    queue = filled(segments("a", 10, 10, priority=BULK), segments("b", *[10] * (BULK_SHARE - 1)))
    queue.take(BULK_SHARE - 1)
    queue.push(segments("c", 10))
    assert clients(queue.take(1)) == "a", "it is still owed where nothing interactive waited meanwhile"


@pytest.mark.parametrize(("limit", "taken"), [(1, 1), (4, 1), (7, 1), (8, 2), (14, 2), (15, 3), (99, 3), (None, 3)])
def test_tokens_may_be_bounded_but_one_is_taken(limit: int | None, taken: int) -> None:
    queue = filled(segments("a", 4, 4, 7))
    assert len(queue.take(9, limit)) == taken
    assert len(queue) == 3 - taken


def beams(client: str, *sizes: int) -> list[Decode]:
    return [Decode([2] * 4, 9, client=client, decoding=Decoding(beam_size=size)) for size in sizes]


def test_a_segment_of_several_slots_is_taken_where_they_fit_and_lets_nobody_pass() -> None:
    first, second, third = own = beams("a", 2, 4, 1)
    queue = filled(own)
    assert queue.slots == 7
    assert queue.take(5) == [first]
    assert queue.take(3) == []
    assert queue.take(4) == [second]
    assert (queue.take(9), queue.slots) == ([third], 0)


def test_a_share_may_be_overdrawn_by_one_segment_where_there_is_room() -> None:
    first, second, _ = own = beams("a", 4, 4, 4)
    queue = filled(own)
    assert queue.take(2, room=8) == [first]
    assert queue.take(2, room=3) == []
    assert queue.take(2, room=4) == [second]


def test_of_a_beam_the_encoder_reads_the_source_once() -> None:
    own = beams("a", 4, 4, 4)
    assert filled(own).take(12, source_tokens=8) == own[:2]


def test_a_client_pays_for_each_slot() -> None:
    queue = filled(beams("a", *[4] * 20), segments("b", *[4] * 80))
    taken = clients(queue.take(400)[:40])
    assert taken.count("b") == pytest.approx(4 * taken.count("a"), abs=8)
    assert Load.of(beams("a", 3)) == Load(12, 0)


def test_strangers_are_taken_out_of_turn_and_pay_for_it() -> None:
    queue = filled(segments("a", *[10] * 9), segments("b", *[QUANTUM] * 9), segments("c", 10, 10))
    held = filled(segments("a", 10), segments("c", 10, priority=BULK))
    assert clients(queue.take_new(5, held)) == "bc"
    assert queue.take_new(0, held) == []
    assert clients(queue.take(12)) == "aaacaaabaaab", "b has had its first turn"


@pytest.mark.parametrize("count", [1, 2])
def test_strangers_are_found_behind_all_who_are_known(count: int) -> None:
    queue = filled(segments("a", 10), segments("b", 10), segments("c", 10), segments("d", 10), segments("e", 10))
    held = filled(segments("a", 10), segments("b", 10), segments("c", 10))
    assert clients(queue.take_new(count, held)) == "de"[:count]


def test_strangers_of_bulk_wait_while_anything_interactive_does() -> None:
    queue = filled(segments("a", 10), segments("b", 10, priority=BULK))
    held = filled(segments("a", 10))
    assert queue.take_new(5, held) == []
    queue.take(1)
    assert clients(queue.take_new(5, held)) == "b"
    assert queue.take_new(5, held) == []


def test_what_strangers_get_out_of_turn_is_owed_to_bulk() -> None:
    crowd = [segments(f"{number}", 10, 10) for number in range(BULK_SHARE - 1)]
    queue = filled(segments("bulk", 10, priority=BULK), *crowd)
    assert len(queue.take_new(99, FairQueue())) == BULK_SHARE - 1
    [next_taken] = queue.take(1)
    assert next_taken.priority is BULK


def test_a_segment_is_hastened_where_the_turn_of_another_client_comes_sooner() -> None:
    crowd = segments("a", *[10] * 100)
    queue = filled(crowd, segments("b", 10))
    queue.promote(crowd[90], "b", INTERACTIVE)
    assert crowd[90].client == "b"
    assert crowd[90] in queue.take(10)
    first = crowd[10]
    queue.push(segments("b", *[10] * 100))
    queue.promote(first, "b", INTERACTIVE)
    assert first.client == "a"


def test_what_is_ahead_of_a_segment_is_what_arrived_before_it_and_still_waits() -> None:
    crowd = segments("a", *[10] * 9)
    queue = filled(segments("a", *[10] * 5), crowd, segments("b", 10, 10))
    queue.take(3)
    queue.remove(crowd[0])
    for segment in (crowd[0], crowd[1], crowd[2]):
        queue.promote(segment, "b", INTERACTIVE)
    assert clients(crowd) == "aabaaaaaa"


def test_a_segment_keeps_its_place_where_its_own_client_asks_again() -> None:
    crowd = segments("a", 10, 10, 10)
    queue = filled(crowd)
    for segment in (crowd[0], crowd[1]):
        queue.promote(segment, "a", INTERACTIVE)
    assert queue.take(3) == crowd


def test_a_segment_is_hastened_to_a_better_priority_and_never_to_a_worse_one() -> None:
    [bulk] = segments("a", 10, priority=BULK)
    [interactive] = segments("a", 10)
    queue = filled([bulk, interactive])
    queue.promote(interactive, "b", BULK)
    queue.promote(bulk, "b", INTERACTIVE)
    assert (interactive.client, interactive.priority) == ("a", INTERACTIVE)
    assert (bulk.client, bulk.priority) == ("b", INTERACTIVE)
    assert queue.source_tokens_of(BULK) == 0


def test_what_does_not_wait_is_not_hastened() -> None:
    [segment] = segments("a", 10, priority=BULK)
    queue = filled(segments("b", 10))
    queue.promote(segment, "b", INTERACTIVE)
    assert (segment.client, segment.priority, len(queue)) == ("a", BULK, 1)


@given(
    waiting=st.dictionaries(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(Priority)), st.lists(LENGTHS, max_size=20), max_size=8
    ),
    own=st.lists(LENGTHS, min_size=1, max_size=5),
    priority=st.sampled_from(Priority),
)
def test_what_is_told_to_be_ahead_of_a_request_is_what_is_taken_before_it(
    waiting: dict[tuple[str, Priority], list[int]], own: list[int], priority: Priority
) -> None:
    queue = filled(*(segments(client, *lengths, priority=priority) for (client, priority), lengths in waiting.items()))
    told = queue.ahead_of("a", priority, sum(own))
    request = segments("a", *own, priority=priority)
    queue.push(request)
    taken = queue.take(len(queue))
    before = tokens_of(taken[: taken.index(request[-1])]) - sum(own[:-1])
    slack = (4 * (QUANTUM + LONGEST) + LONGEST) * (BULK_SHARE if priority is BULK else 1) + BULK_SHARE * LONGEST
    assert abs(told - before) <= slack


def test_what_is_ahead_of_one_among_very_many_clients_is_bounded() -> None:
    queue = filled(*(segments(f"{number}", 10) for number in range(1_000)), segments("big", *[10] * 1_000))
    assert queue.ahead_of("new", INTERACTIVE, 20) == 20_000
    assert queue.ahead_of("new", INTERACTIVE, 15) == 15_015
    assert queue.ahead_of("new", BULK, 15) == 15 * (BULK_SHARE - 1)


class FairQueueMachine(RuleBasedStateMachine):
    """Any order of calls, beside plain lists of what waits."""

    waiting = Bundle("waiting")

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.other = FairQueue(), filled(segments("a", 1), segments("b", 1, priority=BULK))
        self.books: defaultdict[tuple[str, Priority], list[Decode]] = defaultdict(list)

    @rule(
        target=waiting,
        client=st.sampled_from("abc"),
        priority=st.sampled_from(Priority),
        lengths=st.lists(LENGTHS, max_size=4),
    )
    def push(self, client: str, priority: Priority, lengths: list[int]):
        new = segments(client, *lengths, priority=priority)
        self.queue.push(new)
        self.books[client, priority] += new
        return multiple(*new)

    def leave(self, taken: list[Decode]) -> None:
        """Each is the first of its client that still waits."""
        for segment in taken:
            assert self.books[segment.client, segment.priority].pop(0) is segment

    @rule(count=st.integers(0, 5), limit=st.none() | st.integers(0, 200))
    def take(self, count: int, limit: int | None) -> None:
        before = len(self.queue)
        taken = self.queue.take(count, limit)
        assert len(taken) <= count
        assert bool(taken) is bool(count and before)
        assert limit is None or len(taken) < 2 or tokens_of(taken) <= limit
        assert limit is not None or len(taken) == min(count, before)
        self.leave(taken)

    @rule(count=st.integers(0, 3))
    def take_new(self, count: int) -> None:
        best = min((priority for (_, priority), flow in self.books.items() if flow), default=INTERACTIVE)
        strangers = {
            client
            for (client, priority), flow in self.books.items()
            if flow and priority is best and not self.other.load_of(client, priority).source_tokens
        }
        taken = self.queue.take_new(count, self.other)
        assert len(taken) == min(count, len(strangers))
        assert {segment.client for segment in taken} <= strangers
        self.leave(taken)

    @rule(segment=consumes(waiting))
    def remove(self, segment: Decode) -> None:
        if segment in self.queue:
            self.queue.remove(segment)
            self.books[segment.client, segment.priority].remove(segment)

    @rule(segment=waiting, client=st.sampled_from("abc"), priority=st.sampled_from(Priority))
    def promote(self, segment: Decode, client: str, priority: Priority) -> None:
        place = segment.client, segment.priority
        self.queue.promote(segment, client, priority)
        if (segment.client, segment.priority) != place:
            assert (segment.client, segment.priority) == (client, priority)
            self.books[place].remove(segment)
            self.books[client, priority].append(segment)

    @rule()
    def clear(self) -> None:
        everything = [segment for flow in self.books.values() for segment in flow]
        assert sorted(map(id, self.queue.clear())) == sorted(map(id, everything))
        self.books.clear()

    @invariant()
    def books_agree(self) -> None:
        flows = {place: flow for place, flow in self.books.items() if flow}
        everything = [segment for flow in flows.values() for segment in flow]
        assert len(self.queue) == len(everything)
        assert self.queue.clients == len(flows)
        assert all(segment in self.queue for segment in everything)
        assert self.queue.load == Load(tokens_of(everything), 3 * tokens_of(everything))
        for client in "abc":
            for priority in Priority:
                tokens = tokens_of(flows.get((client, priority), []))
                assert self.queue.load_of(client, priority) == Load(tokens, 3 * tokens)


FairQueueMachine.TestCase.settings = settings(stateful_step_count=30)
TestFairQueueMachine = FairQueueMachine.TestCase
