"""A caller who has done nothing wrong, and must be answered all the time while others send odd things."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PERIOD_S = 0.05


@contextmanager
def probing(ask: Callable[[], str]) -> Iterator[list[str]]:
    """Calls on and on, and gives the answers so far.

    Args:
        ask: makes one call over a connection of its own.

    Raises:
        AssertionError: a call was not answered.
    """
    answers: list[str] = []
    failures: list[BaseException] = []
    ended = threading.Event()

    def probe() -> None:
        try:
            while not ended.wait(_PERIOD_S):
                answers.append(ask())
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield answers
    finally:
        ended.set()
        thread.join()
    assert not failures, failures
