"""A clock that a test moves."""

import pytest

from service.queue import admission, mailbox


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
