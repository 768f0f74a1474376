"""A clock that a test moves, and threads that wait in a mailbox."""

import sys
import threading
import time
from types import FrameType

import pytest

from service.queue import admission, mailbox
from service.queue.mailbox import Mailbox

PATIENCE_S = 60
TAKE = Mailbox.take.__code__


class Clock:
    """The time, as the queue reads it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (mailbox, admission):
        monkeypatch.setattr(module, "time", clock)
    return clock


def until_blocked(threads: int) -> None:
    """Come back once that number of threads wait in a mailbox: only then does a test prove that they are woken."""
    end_s = time.monotonic() + PATIENCE_S
    while sum(map(is_blocked, sys._current_frames().values())) < threads:  # noqa: SLF001  (documented all the same)
        assert time.monotonic() < end_s
        time.sleep(0.001)


def is_blocked(frame: FrameType | None) -> bool:
    """Tell whether a thread waits for a condition of a mailbox; it holds the lock until it can be woken."""
    functions = []
    while frame is not None:
        functions.append(frame.f_code)
        frame = frame.f_back
    return threading.Condition.wait.__code__ in functions and TAKE in functions
