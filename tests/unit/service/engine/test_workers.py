import gc
import threading
import weakref

import pytest
from structlog.testing import capture_logs

from service.engine.workers import Workers

PATIENCE_S = 30.0


def test_the_end_of_the_last_is_told() -> None:
    gates = [threading.Event() for _ in range(3)]
    workers = Workers("worker", [lambda gate=gate: gate.wait(PATIENCE_S) for gate in gates])
    workers.start()
    for gate in gates:
        assert not workers.ended.done()
        gate.set()
    assert workers.ended.result(PATIENCE_S) is None


def test_the_first_error_is_told_once_all_have_ended() -> None:
    gate, failed = threading.Event(), threading.Event()

    def fail_first() -> None:
        failed.set()
        raise SystemExit("first")  # no thread may end in silence, whatever ended it

    def fail_last() -> None:
        assert gate.wait(PATIENCE_S)
        raise ValueError("last")

    workers = Workers("worker", [fail_last, fail_first])
    workers.start()
    assert failed.wait(PATIENCE_S)
    assert not workers.ended.done()
    gate.set()
    with pytest.raises(SystemExit, match="first"):
        workers.ended.result(PATIENCE_S)


def test_a_waiter_that_gives_up_does_not_cancel_the_news() -> None:
    gate = threading.Event()
    workers = Workers("worker", [lambda: gate.wait(PATIENCE_S)])
    workers.start()
    assert not workers.ended.cancel()
    gate.set()
    assert workers.ended.result(PATIENCE_S) is None


def test_a_thread_that_does_not_end_is_left_behind() -> None:
    gate = threading.Event()
    workers = Workers("worker", [lambda: gate.wait(PATIENCE_S)])
    workers.start()
    with capture_logs() as logged:
        workers.join(0.01)
    assert logged == [{"log_level": "error", "event": "a thread does not end", "thread": "worker-0"}]
    gate.set()
    workers.join()
    assert workers.ended.done()


def test_what_was_never_started_goes_with_the_last_that_knows_it() -> None:
    class Owner:
        def __init__(self) -> None:
            self.workers = Workers("worker", [self.run])

        def run(self) -> None:
            pass

    owner = Owner()
    gone = weakref.ref(owner)
    gc.disable()  # which may be minutes away
    try:
        owner.workers.join()
        del owner
        assert gone() is None
    finally:
        gc.enable()


def test_what_is_rehearsed_runs_on_the_threads_that_run_later() -> None:
    ran: list[int] = []
    barrier = threading.Barrier(3)  # none can do the work of two
    workers = Workers("worker", [lambda: ran.append(threading.get_ident())] * 3)

    def rehearsed() -> int:
        barrier.wait(PATIENCE_S)
        return threading.get_ident()

    threads = [workers.on_each_thread([rehearsed] * 3) for _ in range(2)]
    assert threads[0] == threads[1]
    assert len(set(threads[0])) == 3
    assert not ran
    workers.start()
    assert workers.join()
    assert sorted(ran) == sorted(threads[0])
    assert workers.ended.result(0) is None


def test_what_fails_in_a_rehearsal_is_raised_and_ends_no_thread() -> None:
    workers = Workers("worker", [lambda: None] * 2)

    def fail() -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        workers.on_each_thread([fail, lambda: None])
    assert workers.on_each_thread([lambda: 1, lambda: 2]) == [1, 2]
    assert not workers.ended.done()
    assert workers.join()
    assert workers.ended.result(0) is None


def test_threads_that_only_rehearsed_end_and_keep_nothing() -> None:
    class Owner:
        def __init__(self) -> None:
            self.workers = Workers("worker", [self.run])

        def run(self) -> None:
            raise AssertionError("was never started")

        def rehearse(self) -> None:
            pass

    owner = Owner()
    gone = weakref.ref(owner)
    gc.disable()
    try:
        owner.workers.on_each_thread([owner.rehearse])
        assert owner.workers.join(PATIENCE_S)
        del owner
        assert gone() is None
    finally:
        gc.enable()
