"""The mailbox between several threads, and under any order of calls; the tests themselves play the engine."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle as Pool
from hypothesis.stateful import RuleBasedStateMachine, invariant, multiple, precondition, rule

from dragoman.errors import DrainingError, InternalError, QueueFullError
from service.decode import Decode, FinishReason
from service.queue.mailbox import Mailbox
from tests.idle import wait_idle
from tests.unit.service.queue.conftest import until_blocked

PATIENCE_S = 60
LIMIT = 12
TAKERS = 3


def segments(*lengths: int, **fields) -> list[Decode]:
    return [Decode([2] * length, 9, **fields) for length in lengths]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def mailbox(pool: ThreadPoolExecutor) -> Iterator[Mailbox]:
    """At the end it wakes the threads that take, so that a test that fails does not hang."""
    mailbox = Mailbox(1_000_000)
    for _ in range(TAKERS):
        mailbox.register_worker()
    yield mailbox
    mailbox.stop()


def test_a_waiting_thread_is_woken_by_a_segment(mailbox: Mailbox, pool: ThreadPoolExecutor) -> None:
    taken = pool.submit(mailbox.take, 0, 4, wait=True)
    until_blocked(1)
    [segment] = segments(1)
    mailbox.submit([segment])
    assert taken.result(PATIENCE_S) == [segment]


def test_all_waiting_threads_are_woken_by_a_stop(mailbox: Mailbox, pool: ThreadPoolExecutor) -> None:
    taken = [pool.submit(mailbox.take, worker, 4, wait=True) for worker in range(TAKERS)]
    until_blocked(3)
    mailbox.stop()
    assert [future.result(PATIENCE_S) for future in taken] == [None] * 3


def test_one_submission_wakes_as_many_threads_as_can_share_it(mailbox: Mailbox, pool: ThreadPoolExecutor) -> None:
    taken = [pool.submit(mailbox.take, worker, 1, wait=True) for worker in range(TAKERS)]
    until_blocked(3)
    mailbox.submit(segments(1, 1, 1))
    assert [len(future.result(PATIENCE_S)) for future in taken] == [1, 1, 1]


def test_what_has_ended_or_was_withdrawn_is_not_unfinished(mailbox: Mailbox) -> None:
    finished, withdrawn, failed = segments(1, 1, 1)
    mailbox.submit([finished, withdrawn, failed])
    mailbox.take(0, 1, wait=False)
    finished.finish(FinishReason.EOS, 0.0)
    mailbox.deliver([finished])
    mailbox.cancel([withdrawn])
    assert mailbox.unfinished == 1
    mailbox.fail(InternalError("broken"))
    assert not mailbox.unfinished


def test_threads_that_submit_cancel_and_take_at_once_lose_nothing(mailbox: Mailbox, pool: ThreadPoolExecutor) -> None:
    told: Counter[Decode] = Counter()
    lock = threading.Lock()

    def note(segment: Decode) -> None:
        with lock:
            told[segment] += 1

    requests = [[segments(1, 2, 3, on_progress=note) for _ in range(100)] for _ in range(3)]

    def submit(mine: list[list[Decode]]) -> None:
        for request in mine:
            mailbox.submit(request)
            mailbox.cancel(request[1:2])

    def work(worker: int) -> None:
        while (taken := mailbox.take(worker, 4, wait=True, demand=2)) is not None:
            for segment in taken:
                segment.finish(FinishReason.CANCELLED if segment.cancel_requested else FinishReason.EOS, 0.0)
            mailbox.deliver(taken)

    workers = [pool.submit(work, worker) for worker in range(TAKERS)]
    for submitter in [pool.submit(submit, mine) for mine in requests]:
        submitter.result(PATIENCE_S)
    assert wait_idle(mailbox, PATIENCE_S)
    mailbox.stop()
    for worker in workers:
        worker.result(PATIENCE_S)
    for kept, withdrawn, also_kept in chain.from_iterable(requests):
        assert told[kept] == told[also_kept] == 1
        assert withdrawn.finished
        assert told[withdrawn] <= 1
        assert withdrawn.finish_reason is FinishReason.EOS or not told[withdrawn]
    assert mailbox.waiting.load.source_tokens == len(mailbox.waiting) == 0


def test_a_second_taker_sleeps_until_the_first_has_enough(mailbox: Mailbox, pool: ThreadPoolExecutor) -> None:
    first = pool.submit(mailbox.take, 0, 8, wait=True, demand=2)
    until_blocked(1)
    second = pool.submit(mailbox.take, 1, 8, wait=True, demand=2)
    until_blocked(2)
    mailbox.submit(segments(1))
    assert len(first.result(PATIENCE_S)) == 1
    mailbox.submit(segments(1))
    assert not second.done()
    mailbox.submit(segments(1))
    assert len(second.result(PATIENCE_S)) == 1
    assert len(mailbox.waiting) == 1
    assert len(mailbox.take(0, 8, wait=False, demand=1)) == 1


class MailboxMachine(RuleBasedStateMachine):
    """Any order of calls, beside plain books of what should be."""

    segments = Pool("segments")

    def __init__(self) -> None:
        super().__init__()
        self.told: Counter[Decode] = Counter()
        self.mailbox = Mailbox(LIMIT)
        self.demand = [0 for _ in range(TAKERS) if self.mailbox.register_worker() < TAKERS]
        self.waiting: list[Decode] = []
        self.running: list[Decode] = []
        self.ended: list[Decode] = []
        self.due: Counter[Decode] = Counter()
        self.refuses = False

    @rule(target=segments, lengths=st.lists(st.integers(1, 8), max_size=3))
    def submit(self, lengths: list[int]):
        new = segments(*lengths, on_progress=lambda segment: self.told.update([segment]))
        room = not (self.waiting and new) or sum(lengths) + sum(len(s.source_ids) for s in self.waiting) <= LIMIT
        try:
            self.mailbox.submit(new)
        except QueueFullError:
            assert not room
            return multiple()
        except (DrainingError, InternalError):
            assert self.refuses
            return multiple()
        assert room
        assert not self.refuses
        self.waiting += new
        return multiple(*new)

    @rule(worker=st.integers(0, TAKERS - 1), room=st.integers(0, 4), demand=st.integers(0, 6))
    def take(self, worker: int, room: int, demand: int) -> None:
        taken = self.mailbox.take(worker, room, wait=False, demand=demand)
        left = max(0, len(self.waiting) - sum(self.demand[:worker]))
        expected = self.waiting[: min(room, left, max(demand, -(-len(self.waiting) // TAKERS)))]
        assert taken == expected
        self.demand[worker] = max(0, min(demand, room) - len(expected))
        self.waiting = self.waiting[len(expected) :]
        self.running += expected

    @rule(chosen=st.lists(segments, max_size=3, unique=True))
    def cancel(self, chosen: list[Decode]) -> None:
        self.mailbox.cancel(chosen)
        self.ended += [segment for segment in chosen if segment in self.waiting]
        self.waiting = [segment for segment in self.waiting if segment not in chosen]

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        for segment in list(self.running):
            if segment.cancel_requested or data.draw(st.booleans()):
                segment.finish(FinishReason.CANCELLED if segment.cancel_requested else FinishReason.EOS, 0.0)
                self.running.remove(segment)
                self.ended.append(segment)
                self.due[segment] += not segment.cancel_requested
                self.mailbox.deliver([segment])

    @precondition(lambda self: len(self.ended) > 4)
    @rule()
    def close(self) -> None:
        self.refuses = True
        self.mailbox.close()

    @precondition(lambda self: len(self.ended) > 4)
    @rule()
    def fail(self) -> None:
        self.refuses = True
        self.mailbox.fail(InternalError("broken"))
        self.due.update(self.waiting)
        self.ended += self.waiting
        self.waiting = []

    @invariant()
    def books_agree(self) -> None:
        assert len(self.mailbox.waiting) == len(self.waiting)
        assert self.mailbox.waiting.load.source_tokens == sum(len(segment.source_ids) for segment in self.waiting)
        assert self.mailbox.unfinished == len(self.waiting) + len(self.running)
        assert self.told == self.due
        assert all(segment.finished for segment in self.ended)
        assert not any(segment.finished for segment in [*self.waiting, *self.running])


MailboxMachine.TestCase.settings = settings(stateful_step_count=30)
TestMailboxMachine = MailboxMachine.TestCase
