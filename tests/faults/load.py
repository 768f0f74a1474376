"""A steady load of callers that have done nothing wrong; every call of theirs is accounted for."""

import threading
import time
from collections import deque
from random import Random

from tests.faults import calls
from tests.faults.books import Books
from tests.faults.server import Server
from tests.faults.truth import Truth
from tests.waiting import until

CALLERS = 4
_PAUSE_S = 0.02
_KEPT_LATENCIES = 200


class Load:
    """Callers in threads, each with a connection of its own, that call until they are told to pause or to stop.

    Attributes:
        books: of all their calls.
    """

    def __init__(self, server: Server, truth: Truth, seed: int = 0) -> None:
        self.books = Books()
        self._truth = truth
        self._server = server
        self._going, self._stopped = threading.Event(), threading.Event()
        self._parked = 0  # callers that wait to be told to go on
        self._lock = threading.Lock()
        self._latencies_s: deque[float] = deque(maxlen=_KEPT_LATENCIES)
        self._threads = [
            threading.Thread(target=self._run, args=[Random(f"{seed} {number}")], daemon=True)
            for number in range(CALLERS)
        ]
        for thread in self._threads:
            thread.start()

    def go(self) -> None:
        """Call, or go on calling."""
        self._going.set()

    def pause(self) -> None:
        """Begin no call, and wait until all that were begun have ended or are lost."""
        self._going.clear()
        until(lambda: self._parked == CALLERS, "all calls end", calls.PATIENCE_S + 10)

    def stop(self) -> None:
        """End; a caller that does not return has lost its call."""
        self._stopped.set()
        self._going.set()
        give_up_s = time.monotonic() + calls.PATIENCE_S + 10
        for thread in self._threads:
            thread.join(max(0.0, give_up_s - time.monotonic()))
        self.books.lose(self.books.figures().open)

    def more(self, count: int, timeout_s: float = calls.PATIENCE_S) -> None:
        """Wait until that many more calls have got right answers.

        Raises:
            TimeoutError: they have not.
        """
        enough = self.books.figures().ok + count
        until(lambda: self.books.figures().ok >= enough, f"{count} more answers", timeout_s)

    def usual_latency_s(self) -> float:
        """What nineteen of twenty of the last calls stayed below."""
        ordered = sorted(self._latencies_s)
        return ordered[len(ordered) * 19 // 20]

    def _run(self, random: Random) -> None:
        ways = [calls.unary, calls.unary, calls.stream]
        if not self._server.over_http:
            ways.append(calls.bulk)  # which only gRPC has
        with self._server.connected() as stub:
            while not self._stopped.is_set():
                self._park()
                way = random.choice(ways)
                texts = self._truth.sentences(random, 1 if way is calls.unary else random.randint(1, 4))
                began_s = time.monotonic()
                calls.call(way, stub, texts, self._truth, self.books, retry=True)
                self._latencies_s.append(time.monotonic() - began_s)
                time.sleep(random.uniform(0, 2 * _PAUSE_S))

    def _park(self) -> None:
        """Wait while there is a pause."""
        while not self._going.is_set():
            with self._lock:
                self._parked += 1
            self._going.wait()
            with self._lock:
                self._parked -= 1
