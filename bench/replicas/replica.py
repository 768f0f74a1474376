"""A simulated replica: calls share its core as in a real one, and are refused by the same rule. Pure."""

import heapq
import math
from collections import deque
from typing import NamedTuple

from dragoman.errors import OverloadedError
from service.options import Priority
from service.queue.admission_rules import QueueLimits, WaitEstimate, check_delay
from service.queue.throughput import Throughput


class Call(NamedTuple):
    """One call of one sentence.

    Attributes:
        number: among all calls.
        work: what it takes, as a share of the mean.
        source_tokens: of its sentence.
    """

    number: int
    work: float
    source_tokens: int


class Kind(NamedTuple):
    """What replicas have in common.

    Attributes:
        per_second: calls of mean work that it finishes a second, by how many share it; the last for that and more.
            `[0]` is of one call.
        slots: calls that share it at most; further ones wait, first come first served.
        max_delay_s: an estimate of the wait beyond which calls are refused; 0: none is.
        refusal_s: of its core, for each call that it refuses.
    """

    per_second: tuple[float, ...]
    slots: int
    max_delay_s: float
    refusal_s: float

    @property
    def peak(self) -> float:
        """Calls a second of a replica that is full."""
        return self.rate(self.slots)

    def rate(self, sharing: int) -> float:
        """Return the calls of mean work that are finished a second while so many share the core."""
        return self.per_second[min(sharing, len(self.per_second)) - 1]

    def busy(self, load: float) -> float:
        """Return the share of its time in which a replica has calls, by the theory of processor sharing.

        Args:
            load: that comes at random, as a share of the peak; below 1.
        """
        came = load * self.peak
        weight = total = 1.0  # of the times with so many calls, as multiples of those without any
        for sharing in range(1, self.slots + 1):
            weight *= came / self.rate(sharing)
            total += weight
        return 1 - 1 / (total + weight * load / (1 - load))


class Replica:
    """Calls in slots share the core equally; how much it does in all depends on how many they are.

    All times are seconds since the start, and no method is told of an earlier time than the one before.
    """

    def __init__(self, kind: Kind) -> None:
        """Begin with nothing."""
        self._kind = kind
        self._limits = QueueLimits(source_tokens=0, max_delay_s=kind.max_delay_s)
        # By the share of work that each call in a slot has had when it ends: of those that began together, the
        # shortest is the first.
        self._running: list[tuple[float, Call]] = []
        self._waiting: deque[Call] = deque()
        self._had = 0.0  # what a call that ran from the beginning would have had
        self._running_tokens = self._waiting_tokens = 0
        self._seen_s = 0.0  # until when time is accounted for
        self._refusing_until_s = 0.0
        self._throughput = Throughput()

    def offer(self, call: Call, now_s: float) -> float | None:
        """Take a call, or refuse it.

        Returns:
            None: it was taken; else when the refusal is answered. Until then it has half of the core, as the thread of
            the event loop beside that of the engine.
        """
        self._advance(now_s)
        if self._refuses(call, now_s):
            self._refusing_until_s = max(self._refusing_until_s, now_s) + 2 * self._kind.refusal_s
            return self._refusing_until_s
        if len(self._running) < self._kind.slots:
            self._run(call)
        else:
            self._waiting.append(call)
            self._waiting_tokens += call.source_tokens
        self._watch(now_s)
        return None

    def next_end_s(self) -> float:
        """Say when the next call ends, if nothing comes; infinite where there is none."""
        if not self._running:
            return math.inf
        left_s = (self._running[0][0] - self._had) * len(self._running) / self._kind.rate(len(self._running))
        refusing_s = max(0.0, self._refusing_until_s - self._seen_s)
        return self._seen_s + left_s + min(left_s, refusing_s / 2)

    def end(self, now_s: float) -> int:
        """End the call that is due now, and return its number."""
        self._advance(now_s)
        had, call = heapq.heappop(self._running)
        self._had = had  # exactly
        self._running_tokens -= call.source_tokens
        self._throughput.finish(call.source_tokens, now_s)
        if self._waiting:
            following = self._waiting.popleft()
            self._waiting_tokens -= following.source_tokens
            self._run(following)
        self._watch(now_s)
        return call.number

    def _run(self, call: Call) -> None:
        heapq.heappush(self._running, (self._had + call.work, call))
        self._running_tokens += call.source_tokens

    def _advance(self, now_s: float) -> None:
        """Give each call in a slot its share of the time that has passed."""
        refusing_s = max(0.0, min(self._refusing_until_s, now_s) - self._seen_s)
        if sharing := len(self._running):
            self._had += (now_s - self._seen_s - refusing_s / 2) * self._kind.rate(sharing) / sharing
        self._seen_s = now_s

    def _refuses(self, call: Call, now_s: float) -> bool:
        """Ask the server's own rule. All calls are of one client, as behind a balancer and without keys."""
        if not self._waiting:
            return False
        before = self._running_tokens + self._waiting_tokens
        rate = self._throughput.per_second(now_s)
        try:
            check_delay(WaitEstimate(Priority.INTERACTIVE, call.source_tokens, before, before, rate), self._limits)
        except OverloadedError:
            return True
        return False

    def _watch(self, now_s: float) -> None:
        """Measure its rate as a server does: while more waits than it has slots."""
        if bool(self._waiting) is not self._throughput.runs:
            if self._waiting:
                self._throughput.start(self._running_tokens, now_s)
            else:
                self._throughput.stop(now_s)
