import os
import threading

from bench.overload.drive import apart


def test_the_generator_has_the_last_core_and_the_servers_the_others() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    with apart() as cores:
        assert cores == (allowed[:-1] or allowed)
        assert os.sched_getaffinity(0) == {allowed[-1]}


def test_threads_that_start_meanwhile_stay_on_the_core_of_the_generator() -> None:
    seen = []
    with apart():
        thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
    assert seen == [{max(os.sched_getaffinity(0))}]


def test_afterwards_all_is_as_it_was() -> None:
    before = os.sched_getaffinity(0)
    with apart():
        pass
    assert os.sched_getaffinity(0) == before
