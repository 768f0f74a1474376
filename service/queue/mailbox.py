"""The only crossing between the event loop and the engine's threads: submit, cancel, deliver."""

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from dragoman.errors import DragomanError, DrainingError
from service.options import Priority, RequestOptions
from service.queue.admission import QueueLimits, Room, WaitEstimate, check_deadline, check_delay, check_room, share_of
from service.queue.decaying_ratio import DecayingRatio
from service.queue.fair_queue import QUANTUM, FairQueue, Load
from service.queue.throughput import Throughput
from service.segment import Segment
from service.telemetry.segment_stats import SegmentStats

# Source tokens that keep a thread in the encoder for several decode steps.
_LONG_RUN_TOKENS: Final = 96
_MEMORY_BYTES: Final = 100_000  # of texts, by which is told how many tokens others have


@dataclass(slots=True, eq=False)
class Reservation:
    """Texts of a call that has been let in, and whose segments come portion by portion.

    Attributes:
        client: whose call it is.
        priority: of the call.
        text_bytes: of what has not come, in UTF-8.
    """

    client: str
    priority: Priority
    text_bytes: int


class Mailbox:
    """Segments that wait for a slot, in fair order, bounded in source tokens, in bytes and in the delay promised.

    Every method may be called from any thread.
    """

    def __init__(
        self,
        limit_source_tokens: int,
        segment_stats: SegmentStats | None = None,
        *,
        limit_text_bytes: int | None = None,
        max_delay_s: float = 0.0,
    ) -> None:
        """An open, empty mailbox; a client of whom nothing waits may send any request.

        Args:
            limit_source_tokens: tokens that may wait of one client alone, see `admission`.
            segment_stats: of its own, where every end is entered once; None: nobody counts.
            limit_text_bytes: bytes of their texts that may wait, likewise; None: any.
            max_delay_s: that an interactive request may have to wait, by `precheck`; 0: any.
        """
        self._segment_stats = segment_stats
        self._limits = QueueLimits(limit_source_tokens, limit_text_bytes, max_delay_s)
        self._waiting = FairQueue()
        self._promises: set[Reservation] = set()
        self._running_tokens = 0  # taken and not ended, in source tokens
        self._rate = Throughput()
        self._tokens_per_byte = DecayingRatio(_MEMORY_BYTES)
        self._unfinished = 0
        self._refusal: DragomanError | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._arrived: list[threading.Condition] = []  # of each worker
        self._demand: list[int] = []  # how many more segments each worker would take at its next step
        self._filled: list[bool] = []  # whether each worker got at its last step all that it can take
        self._idle = threading.Condition(self._lock)
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `on_progress` of all segments on this loop; without one, on the engine's threads."""
        self._loop = loop

    @property
    def queued_segments(self) -> int:
        """Segments that wait."""
        return len(self._waiting)

    @property
    def queued_source_tokens(self) -> int:
        """Source tokens of the segments that wait."""
        return self._waiting.load.source_tokens

    def queued_source_tokens_of(self, priority: Priority) -> int:
        """Source tokens of the segments that wait at one priority."""
        return self._waiting.source_tokens_of(priority)

    @property
    def waiting_clients(self) -> int:
        """Clients of whom segments wait."""
        return self._waiting.clients

    @property
    def limit_source_tokens(self) -> int:
        """Source tokens that may wait of one client alone."""
        return self._limits.source_tokens

    @property
    def portion_source_tokens(self) -> int:
        """Source tokens of segments that should come together, where there are many; one segment may have more."""
        return share_of(self._limits.source_tokens)

    @property
    def drained_per_second(self) -> float | None:
        """Source tokens that the engine finishes a second when it has all that it can take; None before that."""
        with self._lock:
            return self._per_second()

    @property
    def backlog_s(self) -> float:
        """Seconds until all that is unfinished is complete, by the estimate; 0 where there is none."""
        with self._lock:
            reserve = sum(self._tokens_of(promise.text_bytes) for promise in self._promises)
            tokens = self._running_tokens + self._waiting.load.source_tokens + reserve
            return tokens / (self._per_second() or float("inf"))

    def precheck(self, options: RequestOptions, text_bytes: int) -> None:
        """Refuse a request that has no prospects, by the size of its texts alone, before any work on them.

        Args:
            options: of the request.
            text_bytes: of its texts, in UTF-8.

        Raises:
            QueueFullError: it would wait beyond the limits (OverloadedError: beyond the delay promised).
            DeadlineUnreachableError: it would be late.
            DrainingError: the mailbox is closed.
            DragomanError: the engine has failed.
        """
        with self._lock:
            self._refuse()
            if not self._unfinished and not self._promises:
                return
            tokens = self._tokens_of(text_bytes)
            self._check_room(Load(tokens, text_bytes), options.client, options.priority)
            outlook = self._outlook(options.client, options.priority, tokens)
        check_delay(outlook, self._limits)
        if options.deadline_s is not None:
            check_deadline(outlook, options.deadline_s - time.monotonic())

    @contextmanager
    def reserve(self, options: RequestOptions, text_bytes: int) -> Iterator[Reservation]:
        """Count texts that have been let in as waiting of their client, until they have come or the call ends.

        Args:
            options: of the call.
            text_bytes: of its texts, in UTF-8.
        """
        promise = Reservation(options.client, options.priority, text_bytes)
        with self._lock:
            self._promises.add(promise)
        try:
            yield promise
        finally:
            with self._lock:
                self._promises.remove(promise)

    def submit(self, segments: Sequence[Segment], *, let_in: bool = False, again: bool = False) -> None:
        """Queue all segments, or none.

        Args:
            segments: of one client and priority.
            let_in: whether their call has been let in already: then they need room only in the queue as it is.
            again: whether they have been here before, and need no room.

        Raises:
            QueueFullError: they would wait beyond the limits.
            DrainingError: the mailbox is closed.
            DragomanError: the engine has failed.
        """
        now_s = time.monotonic()
        load = Load.of(segments)
        with self._lock:
            self._refuse()
            if segments and not again:
                self._check_room(load, segments[0].client, segments[0].priority, let_in=let_in)
            for segment in segments:
                segment.submitted_s = now_s
            self._waiting.push(segments)
            self._unfinished += len(segments)
            if load.text_bytes:
                self._tokens_per_byte.add(load.source_tokens, load.text_bytes)
            self._wake(0)

    def promote(self, segment: Segment, client: str, priority: Priority) -> None:
        """Have a segment wait for another client as well: in that one's turn, if it waits and that comes sooner."""
        with self._lock:
            self._waiting.promote(segment, client, priority)

    def cancel(self, segments: Iterable[Segment]) -> None:
        """Withdraw segments: those that wait at once, the others before their next step.

        `on_progress` is not called for them any more.
        """
        now_s = time.monotonic()
        with self._lock:
            for segment in segments:
                segment.cancel_requested = True
                if segment in self._waiting:
                    self._waiting.remove(segment)
                    segment.end_early(now_s)
                    self._note_ends([segment], 0)
            self._watch_drain()

    def close(self) -> None:
        """Refuse whatever comes from now on; what was submitted goes on."""
        with self._lock:
            self._refusal = self._refusal or DrainingError("the server is shutting down and takes no new request")

    def stop(self) -> None:
        """Make `take` return None from now on, so that the engine's threads end."""
        with self._lock:
            self._stopped = True
            for arrived in self._arrived:
                arrived.notify()

    def fail(self, error: DragomanError) -> None:
        """End every segment that waits, and refuse whatever comes, with an error; one that was closed says so still."""
        with self._lock:
            self._refusal = self._refusal or error
            self._running_tokens += self._waiting.load.source_tokens
            failed = self._waiting.clear()
            self._watch_drain()
        for segment in failed:
            segment.fail(error, time.monotonic())
        self.deliver(failed)

    def register_worker(self) -> int:
        """Register a thread that will take. Few segments are left to the workers that were registered first.

        Returns:
            Its number, which it takes with.
        """
        with self._lock:
            self._arrived.append(threading.Condition(self._lock))
            self._demand.append(0)
            self._filled.append(False)
            return len(self._arrived) - 1

    def take(
        self, worker: int, room: int, *, wait: bool, demand: int = 0, source_tokens: int | None = None
    ) -> list[Segment] | None:
        """Take the segments whose turn it is, for an engine thread.

        Args:
            worker: the one that takes.
            room: how many it has room for.
            wait: block until there is one for it.
            demand: how many it wants before anyone behind it gets one; of what is beyond, it leaves the others a share.
            source_tokens: beyond which no further segment is taken.

        Returns:
            The segments, perhaps none; None once the engine is to stop.
        """
        with self._lock:
            self._demand[worker] = min(demand, room)
            while wait and not self._left_for(worker) and not self._stopped:
                self._arrived[worker].wait()
            if self._stopped:
                return None
            share = -(-len(self._waiting) // len(self._arrived))
            offered = min(room, max(share, demand), self._left_for(worker))
            taken = self._waiting.take(offered, source_tokens)
            # One that will be long at what it has got leaves what comes meanwhile to the others.
            long = len(taken) < offered or sum([len(segment.source_ids) for segment in taken]) > _LONG_RUN_TOKENS
            self._demand[worker] = 0 if long else max(0, self._demand[worker] - len(taken))
            self._filled[worker] = len(taken) == room or len(taken) < offered
            self._note_taken(taken)
            self._wake(worker + 1)
            return taken

    def take_new(self, count: int, held: FairQueue) -> list[Segment]:
        """Take one segment each of clients of whom a thread holds none, so that they need not wait until it takes more.

        Args:
            count: how many at most.
            held: what the thread holds of all clients.
        """
        with self._lock:
            taken = self._waiting.take_new(count, held)
            self._note_taken(taken)
            return taken

    def deliver(self, progressed: Sequence[Segment]) -> None:
        """Tell the callers that wait for these segments, with one wake-up of the event loop for all."""
        if not progressed:
            return
        finished = [segment for segment in progressed if segment.finished]
        tokens = sum([len(segment.source_ids) for segment in finished])
        try:
            if self._loop is None:
                notify(progressed)
            else:
                with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                    self._loop.call_soon_threadsafe(notify, progressed)
        finally:
            with self._lock:
                if finished:
                    self._rate.finish(tokens, time.monotonic())
                    self._note_ends(finished, tokens)

    def wait_idle(self, timeout_s: float | None = None) -> bool:
        """Block until everything submitted has ended; False if it has not in time."""
        with self._lock:
            return self._idle.wait_for(lambda: not self._unfinished, timeout_s)

    @property
    def unfinished(self) -> int:
        """Segments submitted that have not ended."""
        return self._unfinished

    def _left_for(self, worker: int) -> int:
        """Segments that wait beyond the demand of the workers before this one."""
        return max(0, len(self._waiting) - sum(self._demand[:worker]))

    def _wake(self, first: int) -> None:
        """Wake the workers from `first` on for whom something is left."""
        for worker in range(first, len(self._arrived)):
            if not self._left_for(worker):
                break
            self._arrived[worker].notify()

    def _refuse(self) -> None:
        if self._refusal is not None:
            # Of one error for all, else its traceback would grow with every caller.
            raise self._refusal.with_traceback(None)

    def _check_room(self, request: Load, client: str, priority: Priority, *, let_in: bool = False) -> None:
        own, waiting = self._waiting.load_of(client, priority), self._waiting.load
        if not let_in:
            for promise in self._promises:
                of_client = (promise.client, promise.priority) == (client, priority)
                # What others were promised enters only where there is room for it; but its text is here.
                left = Load(self._tokens_of(promise.text_bytes) if of_client else 0, promise.text_bytes)
                waiting = waiting.plus(left)
                own = own.plus(left) if of_client else own
        room = Room(request, own, waiting, lambda: self._waiting.loads_but(client, priority))
        check_room(room, self._limits, self._per_second)

    def _outlook(self, client: str, priority: Priority, source_tokens: int) -> WaitEstimate:
        before_start = self._waiting.ahead_of(client, priority, QUANTUM)
        running = self._running_tokens
        if self._waiting.load_of(client, priority).source_tokens:
            before_start += running
        else:
            # What runs delays everybody; but to refuse a client that has nothing waiting would not make it less. And
            # of each segment in a slot, however long, no more counts than the request has itself.
            running = min(running, (self._unfinished - len(self._waiting)) * source_tokens)
        before_end = self._waiting.ahead_of(client, priority, source_tokens) + running
        return WaitEstimate(priority, source_tokens, before_start, before_end, self._per_second())

    def _tokens_of(self, text_bytes: int) -> int:
        """How many source tokens texts have, by those before them."""
        return round(text_bytes * (self._tokens_per_byte.value() or 0.0))

    def _per_second(self) -> float | None:
        return self._rate.per_second(time.monotonic())

    def _note_taken(self, segments: Sequence[Segment]) -> None:
        self._running_tokens += sum([len(segment.source_ids) for segment in segments])
        self._watch_drain()

    def _watch_drain(self) -> None:
        """Measure how fast the engine is, while it has all that it can take."""
        busy = len(self._waiting) > 0 and all(self._filled)
        if busy is not self._rate.runs:
            now_s = time.monotonic()
            if busy:
                self._rate.start(self._running_tokens, now_s)
            else:
                self._rate.stop(now_s)

    def _note_ends(self, segments: Sequence[Segment], source_tokens: int) -> None:
        """Enter ends of segments; `source_tokens` are those of the segments that had been taken."""
        if self._segment_stats is not None:
            self._segment_stats.enter(segments)
        self._running_tokens -= source_tokens
        self._unfinished -= len(segments)
        if not self._unfinished:
            self._idle.notify_all()


def notify(segments: Sequence[Segment]) -> None:
    """Call `on_progress` of all, but of those that were cancelled.

    Raises:
        Exception: what the last of them raised that failed.
    """
    failure: Exception | None = None
    for segment in segments:
        if segment.cancel_requested:
            continue
        try:
            segment.on_progress(segment)
        except Exception as error:  # one caller's fault must not keep the news from the others
            failure = error
    if failure is not None:
        raise failure
