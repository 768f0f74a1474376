import gc
import threading
import weakref

import pytest
from structlog.testing import capture_logs

from service.workers import Workers

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
