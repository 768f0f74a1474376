"""The admission to a queue: by its waiting, running and reserved tokens, and by the speed of the engine."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Final

from dragoman.errors import DragomanError
from service.decode import Decode
from service.options import Priority, RequestOptions
from service.queue import admission_rules as rules
from service.queue.admission_rules import QueueLimits, Room, WaitEstimate
from service.queue.fair_queue import QUANTUM, FairQueue, Load

_MEMORY_BYTES: Final = 100_000  # of recent texts, from which the tokens of later texts are estimated
_MEMORY_S: Final = 2.0  # of busy time: some hundred sentences; a slower machine shows within seconds
# After this time without busy time the rate counts as unknown. Else one stall could make the rate so low that too many
# requests are refused, and the engine is never busy again.
_TRUST_S: Final = 30.0


@dataclass(slots=True, eq=False)
class Reservation:
    """Texts of an admitted call whose segments come portion by portion.

    Attributes:
        text_bytes: bytes of the texts that have not come yet, in UTF-8.
        slots: slots that each segment will take.
    """

    client: str
    priority: Priority
    text_bytes: int
    slots: int


class Admission:
    """Admits decodes to one queue, or refuses them.

    Calls use it from any thread. The owner of the queue reports the starts and ends of decodes, holding the lock.
    """

    def __init__(
        self, limits: QueueLimits, waiting: FairQueue, lock: threading.Lock, is_saturated: Callable[[], bool]
    ) -> None:
        """Begin without measurements.

        Args:
            is_saturated: tells whether the engine has all decodes that it can take; called under the lock.
        """
        self._limits = limits
        self._reservations: set[Reservation] = set()
        self._refusal: DragomanError | None = None
        self._waiting = waiting
        self._lock = lock
        self._is_saturated = is_saturated
        self._running = 0  # decodes that were taken and have not ended
        self._running_tokens = 0  # source tokens of these decodes
        self._throughput = Throughput()
        self._tokens_per_byte = DecayingRatio(_MEMORY_BYTES)

    @property
    def portion_source_tokens(self) -> int:
        """Source tokens of one portion of a large call; a single decode may have more."""
        return rules.share_of(self._limits.source_tokens)

    @property
    def drained_per_second(self) -> float | None:
        """Source tokens that the fully loaded engine finishes per second; None where that is not known."""
        with self._lock:
            return self._per_second()

    @property
    def backlog_s(self) -> float:
        """Estimated seconds until all unfinished work is complete; 0 where there is no estimate."""
        with self._lock:
            reserved = sum(self._tokens_of(each.text_bytes, each.slots) for each in self._reservations)
            tokens = self._running_tokens + self._waiting.load.source_tokens + reserved
            return tokens / (self._per_second() or float("inf"))

    def precheck(self, options: RequestOptions, text_bytes: int) -> None:
        """Refuse a request that cannot succeed, by the size of its texts alone, before any work on the texts.

        Args:
            text_bytes: bytes of its texts, in UTF-8.

        Raises:
            QueueFullError: the queue has no room for it (OverloadedError: it would wait beyond the promised delay).
            DeadlineUnreachableError: it would miss its deadline.
            DrainingError: the queue is closed.
            DragomanError: the engine has failed.
        """
        with self._lock:
            if self._refusal is not None:
                raise self._refusal.with_traceback(None)  # else its traceback would grow with every caller
            if not (self._waiting.slots or self._running or self._reservations):
                return
            tokens = self._tokens_of(text_bytes, options.decoding.beam_size)
            self._check_room(Load(tokens, text_bytes), options.client, options.priority)
            estimate = self._estimate(options.client, options.priority, tokens)
        rules.check_delay(estimate, self._limits)
        if options.deadline_s is not None:
            rules.check_deadline(estimate, options.deadline_s - time.monotonic())

    @contextmanager
    def reserve(self, options: RequestOptions, text_bytes: int) -> Iterator[Reservation]:
        """Count the texts of an admitted call as waiting, until their segments have come or the call ends."""
        reservation = Reservation(options.client, options.priority, text_bytes, options.decoding.beam_size)
        with self._lock:
            self._reservations.add(reservation)
        try:
            yield reservation
        finally:
            with self._lock:
                self._reservations.remove(reservation)

    def close(self, error: DragomanError) -> None:
        """Refuse all further decodes and requests with an error; under the lock. The first error stays."""
        self._refusal = self._refusal or error

    def admit(self, decodes: Sequence[Decode], *, let_in: bool, again: bool) -> None:
        """Raise where there is no room; else note how many tokens a byte of text has; under the lock.

        Args:
            decodes: decodes of one client and priority.
            let_in: whether their call was admitted before: then the reservations of calls do not count.
            again: whether they were in the queue before, and need no room.

        Raises:
            QueueFullError: the queue has no room for them.
            DrainingError: the queue is closed.
            DragomanError: the engine has failed.
        """
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)  # else its traceback would grow with every caller
        # Where nothing waits, any request has room: see `admission_rules.check_room`.
        if (self._waiting.slots or self._reservations) and decodes and not again:
            self._check_room(Load.of(decodes), decodes[0].client, decodes[0].priority, let_in=let_in)
        if text_bytes := sum([decode.text_bytes for decode in decodes]):
            self._tokens_per_byte.add(sum([decode.tokens for decode in decodes]), text_bytes)

    def note_taken(self, decodes: Sequence[Decode]) -> None:
        """Count decodes that have left the queue to run; under the lock."""
        self._running += len(decodes)
        self._running_tokens += sum([decode.cost for decode in decodes])
        self.watch()

    def note_ends(self, decodes: Sequence[Decode]) -> None:
        """Count decodes that ran, and have ended; under the lock."""
        tokens = sum([decode.cost for decode in decodes])
        self._running -= len(decodes)
        self._running_tokens -= tokens
        self._throughput.finish(tokens, time.monotonic())

    def watch(self) -> None:
        """Measure the speed of the engine, while it has all that it can take and more decodes wait; under the lock."""
        busy = self._waiting.slots > 0 and self._is_saturated()
        if busy is not self._throughput.runs:
            now_s = time.monotonic()
            if busy:
                self._throughput.start(self._running_tokens, now_s)
            else:
                self._throughput.stop(now_s)

    def _check_room(self, request: Load, client: str, priority: Priority, *, let_in: bool = False) -> None:
        own, waiting = self._waiting.load_of(client, priority), self._waiting.load
        if not let_in:
            for reservation in self._reservations:
                of_client = (reservation.client, reservation.priority) == (client, priority)
                # The reserved tokens of others enter only where there is room; but their text takes memory already.
                tokens = self._tokens_of(reservation.text_bytes, reservation.slots) if of_client else 0
                left = Load(tokens, reservation.text_bytes)
                waiting = waiting.plus(left)
                own = own.plus(left) if of_client else own
        room = Room(request, own, waiting, lambda: self._waiting.loads_but(client, priority))
        rules.check_room(room, self._limits, self._per_second)

    def _estimate(self, client: str, priority: Priority, source_tokens: int) -> WaitEstimate:
        before_start = self._waiting.ahead_of(client, priority, QUANTUM)
        running = self._running_tokens
        if self._waiting.load_of(client, priority).source_tokens:
            before_start += running
        else:
            # Running segments delay every client; but refusing a client that has nothing waiting would not change
            # that. And each segment in a slot, however long, counts for no more tokens than the request has itself.
            running = min(running, self._running * source_tokens)
        before_end = self._waiting.ahead_of(client, priority, source_tokens) + running
        return WaitEstimate(priority, source_tokens, before_start, before_end, self._per_second())

    def _tokens_of(self, text_bytes: int, slots: int) -> int:
        """Estimate the source tokens of texts from earlier texts; each token counts once for each of the slots."""
        return round(slots * text_bytes * (self._tokens_per_byte.value() or 0.0))

    def _per_second(self) -> float | None:
        return self._throughput.per_second(time.monotonic())


class Throughput:
    """Source tokens finished per second.

    The clock runs while every thread has all segments that it can take and more segments wait: an engine with free
    slots finishes less only because it gets less. The rate is known once as many tokens were finished as were in
    progress when the clock started: slots that were all filled at once finish nothing for a while.

    Attributes:
        runs: whether the clock runs.
    """

    def __init__(self) -> None:
        self._ratio = DecayingRatio(_MEMORY_S)
        self.runs = False
        self._counted_s = 0.0  # the time up to which the clock has counted, while it runs
        self._stopped_s = 0.0  # when the clock last stopped
        self._missing = 0  # source tokens to be finished until the rate is known
        self._known = False

    def start(self, source_tokens: int, now_s: float) -> None:
        """Start the clock, at a time at which `source_tokens` are in progress."""
        self._known = self._known and self._trusted(now_s)
        self.runs, self._counted_s = True, now_s
        if not self._known:
            self._ratio = DecayingRatio(_MEMORY_S)
            self._missing = source_tokens

    def stop(self, now_s: float) -> None:
        """Stop the clock."""
        self.finish(0, now_s)
        self.runs, self._stopped_s = False, now_s

    def finish(self, source_tokens: int, now_s: float) -> None:
        """Count finished source tokens, if the clock runs."""
        if not self.runs:
            return
        self._ratio.add(source_tokens, now_s - self._counted_s)
        self._counted_s = now_s
        if not self._known:
            self._missing -= source_tokens
            self._known = self._missing <= 0 < source_tokens

    def per_second(self, now_s: float) -> float | None:
        """Give the source tokens per second; None where that is not known."""
        if not (self._known and self._trusted(now_s)):
            return None
        # The time since the last end counts already: the running segments may take long.
        return self._ratio.value(now_s - self._counted_s if self.runs else 0.0) or None

    def _trusted(self, now_s: float) -> bool:
        return self.runs or now_s - self._stopped_s <= _TRUST_S


class DecayingRatio:
    """The ratio of two sums in which older shares count for less, with exponential decay."""

    def __init__(self, memory: float) -> None:
        """Begin with empty sums.

        Args:
            memory: growth of the denominator after which a share counts 1/e of the latest share.
        """
        self._memory = memory
        self._numerator = self._denominator = 0.0

    def add(self, numerator: float, denominator: float) -> None:
        """Count an interval; the numerator is taken as spread evenly over the interval."""
        kept = math.exp(-denominator / self._memory)
        weight = self._memory * (1 - kept) / denominator if denominator else 1.0
        self._numerator = self._numerator * kept + numerator * weight
        self._denominator = self._denominator * kept + denominator * weight

    def value(self, more: float = 0.0) -> float | None:
        """Give the ratio; None where nothing was added.

        Args:
            more: growth of the denominator since the last interval, without growth of the numerator.
        """
        if more:
            later = copy(self)
            later.add(0.0, more)
            return later.value()
        return self._numerator / self._denominator if self._denominator else None
