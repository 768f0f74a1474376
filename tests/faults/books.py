"""The books of one kind of calls: every call that was sent ends in exactly one line of them."""

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Figures:
    """What the books say at one moment.

    Attributes:
        sent: calls begun; one that was tried again is one call.
        ok: answered with the known right translation.
        wrong: answered with anything else.
        failed: answered with an error, by its reason.
        lost: not answered within the patience of whoever called.
        retried: tries that failed and were made again, by reason.
    """

    sent: int = 0
    ok: int = 0
    wrong: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    retried: Counter[str] = field(default_factory=Counter)

    @property
    def open(self) -> int:
        """Calls that have no line yet."""
        return self.sent - self.ok - self.wrong - self.failed.total() - self.lost

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            self.sent + other.sent,
            self.ok + other.ok,
            self.wrong + other.wrong,
            self.failed + other.failed,
            self.lost + other.lost,
            self.retried + other.retried,
        )

    def __sub__(self, earlier: "Figures") -> "Figures":
        return Figures(
            self.sent - earlier.sent,
            self.ok - earlier.ok,
            self.wrong - earlier.wrong,
            self.failed - earlier.failed,
            self.lost - earlier.lost,
            self.retried - earlier.retried,
        )


class Books:
    """Figures that several threads enter into."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures = Figures()

    def send(self, count: int = 1) -> None:
        """Enter calls that begin."""
        with self._lock:
            self._figures.sent += count

    def answer(self, right: bool) -> None:
        """Enter an answer."""
        with self._lock:
            if right:
                self._figures.ok += 1
            else:
                self._figures.wrong += 1

    def fail(self, reason: str) -> None:
        """Enter an error that was the answer."""
        with self._lock:
            self._figures.failed[reason] += 1

    def lose(self, count: int = 1) -> None:
        """Enter calls that nobody has answered."""
        with self._lock:
            self._figures.lost += count

    def retry(self, reason: str) -> None:
        """Enter a try that is made again."""
        with self._lock:
            self._figures.retried[reason] += 1

    def figures(self) -> Figures:
        """A copy of what they say now."""
        with self._lock:
            return Figures() + self._figures
