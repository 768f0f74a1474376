"""What each worker gets of what waits, and who is woken for it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decode import Decode
from service.options import Decoding
from service.queue.workers import QueueWorkers

PATIENCE_S = 60.0


def workers_of(count: int) -> QueueWorkers:
    workers = QueueWorkers(threading.Lock())
    assert [workers.register() for _ in range(count)] == list(range(count))
    return workers


def decodes(*lengths: int) -> list[Decode]:
    return [Decode([2] * length, 9) for length in lengths]


@given(st.integers(1, 4), st.integers(0, 30), st.integers(0, 9), st.integers(0, 9))
def test_a_worker_gets_what_it_wants_or_its_share_and_never_more_than_it_has_room_for(count, waiting, room, demand):
    offered = workers_of(count).offer(0, waiting, room, demand)
    assert offered == min(room, waiting, max(demand, -(-waiting // count)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 30))
def test_what_earlier_workers_want_is_not_left_for_later_ones(wanted: list[int], waiting: int) -> None:
    workers = workers_of(len(wanted))
    for worker, count in enumerate(wanted):
        workers.demand[worker] = count
    for worker in range(len(wanted)):
        assert workers.left_for(worker, waiting) == max(0, waiting - sum(wanted[:worker]))


def test_one_that_got_long_decodes_wants_no_more() -> None:
    workers = workers_of(2)
    workers.demand[0] = 5
    workers.note_taken(0, decodes(3, 3), offered=2, room=8)
    assert workers.left_for(1, 10) == 7
    workers.note_taken(0, decodes(200), offered=1, room=8)
    assert workers.left_for(1, 10) == 10


def test_all_are_saturated_once_each_got_all_that_it_can_take() -> None:
    workers = workers_of(2)
    assert not workers.saturated
    workers.note_taken(0, decodes(1, 1), offered=2, room=2)
    assert not workers.saturated
    workers.note_taken(1, decodes(1), offered=2, room=4)  # the others are too long for it now
    assert workers.saturated
    workers.note_taken(0, [], offered=0, room=2)
    assert not workers.saturated


@pytest.mark.parametrize("everybody", [False, True])
def test_those_are_woken_for_whom_something_is_left(everybody: bool) -> None:
    lock = threading.Lock()
    workers, woken = QueueWorkers(lock), []
    waiting = [threading.Event() for _ in range(3)]

    def wait(worker: int) -> None:
        with lock:
            waiting[worker].set()  # the lock is held until it can be woken
            workers.wait(worker)
            woken.append(worker)

    for worker in range(3):
        assert workers.register() == worker
        workers.demand[worker] = 1
    with ThreadPoolExecutor(3) as pool:
        ends = [pool.submit(wait, worker) for worker in range(3)]
        assert all(event.wait(PATIENCE_S) for event in waiting)
        try:
            with lock:
                workers.wake_all() if everybody else workers.wake(2)
            for worker in range(3 if everybody else 2):
                ends[worker].result(PATIENCE_S)
            assert sorted(woken) == ([0, 1, 2] if everybody else [0, 1])
        finally:
            with lock:
                workers.wake_all()


def test_a_beam_of_a_short_sentence_is_no_long_run() -> None:
    workers = workers_of(1)
    workers.demand[0] = 8
    workers.note_taken(0, [Decode([2] * 30, 9, decoding=Decoding(beam_size=4))], 4, 8)
    assert workers.left_for(1, 10) == 10 - 4, "it wants four more"
