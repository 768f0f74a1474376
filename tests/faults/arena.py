"""Where a fault takes place: a server, its load, the fault's own calls, and what was seen."""

import math
import threading
import time
from dataclasses import dataclass, field
from random import Random

from tests.faults import calls
from tests.faults.books import Books
from tests.faults.load import Load
from tests.faults.server import Server
from tests.faults.truth import Truth

_PATIENCE_S = 30.0
_PAUSE_S = 0.02


@dataclass
class Arena:
    """Handed to a fault.

    Attributes:
        server: it runs and serves, and must do so again at the end.
        load: of callers that go on calling all the time.
        truth: what to ask, and what is right.
        random: for whatever is left to chance.
        hit: the books of the fault's own calls, which it may make fail.
        quick_s: what a plain request takes at most that is as quick as ever.
        seen: that the fault has happened, counted, by what.
        measured: what else is worth knowing, by what it is.
        broken: the promises that were not kept, and what should have happened and did not.
    """

    server: Server
    load: Load
    truth: Truth
    random: Random
    quick_s: float
    hit: Books = field(default_factory=Books)
    seen: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    _recovery: "Recovery | None" = None

    def over(self) -> None:
        """Note that the cause of the trouble is gone: recovery is counted from now, or from the end without this."""
        self._recovery = self._recovery or Recovery(self)

    def recovery_s(self) -> float:
        """Seconds from `over` until a plain request was as quick as ever; infinite where none was."""
        self.over()
        assert self._recovery is not None
        self._recovery.join()
        return self._recovery.took_s

    def see(self, what: str, count: float, at_least: float = 1) -> None:
        """Note a sign that the fault happened; one that is missing is as bad as a broken promise."""
        self.seen[what] = round(count, 3)
        if count < at_least:
            self.broken.append(f"did not happen: {what} ({count:g}, not {at_least:g})")

    def measure(self, what: str, value: float) -> None:
        """Note a figure."""
        self.measured[what] = round(value, 3)

    def hold(self, kept: bool, what: str) -> None:
        """Note a promise that was not kept."""
        if not kept:
            self.broken.append(what)


class Recovery(threading.Thread):
    """Asks for a plain sentence over a new connection, again and again, until the answer comes quickly.

    Attributes:
        took_s: from the beginning until that answer.
    """

    def __init__(self, arena: Arena) -> None:
        super().__init__(daemon=True)
        self.took_s = math.inf
        self._arena = arena
        self._text = arena.truth.sentences(arena.random, 1)
        self._began_s = time.monotonic()
        self.start()

    def run(self) -> None:
        while time.monotonic() < self._began_s + _PATIENCE_S:
            if self._is_quick():
                self.took_s = time.monotonic() - self._began_s
                return
            time.sleep(_PAUSE_S)

    def _is_quick(self) -> bool:
        books, asked_s = Books(), time.monotonic()
        with self._arena.server.connected() as stub:
            calls.call(calls.unary, stub, self._text, self._arena.truth, books, patience_s=1.0)
        return bool(books.figures().ok) and time.monotonic() - asked_s <= self._arena.quick_s
