"""The only crossing between the event loop and the engine's threads: submit, cancel, deliver."""

import asyncio
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TypeVar

from dragoman.errors import DragomanError, DrainingError
from service.decode import Decode
from service.options import Priority
from service.queue.admission import Admission
from service.queue.admission_rules import QueueLimits
from service.queue.fair_queue import FairQueue
from service.queue.workers import QueueWorkers
from service.segment import Segment
from service.telemetry.segment_stats import SegmentStats

_News = TypeVar("_News", Decode, Segment)


class Mailbox:
    """Decodes that wait for a slot, in fair order, bounded in source tokens, in bytes and in the delay promised.

    Every method may be called from any thread. Calls ask its `admission` whether they are let in.

    Attributes:
        admission: who is let in.
        waiting: the decodes; other threads only look at it.
    """

    def __init__(
        self,
        limit_source_tokens: int,
        segment_stats: SegmentStats | None = None,
        *,
        limit_text_bytes: int | None = None,
        max_delay_s: float = 0.0,
    ) -> None:
        """Make an open, empty mailbox; a client of whom nothing waits may send any request.

        Args:
            limit_source_tokens: tokens that may wait of one client alone, see `admission_rules`.
            segment_stats: of its own, where every end is entered once; None: nobody counts.
            limit_text_bytes: bytes of their texts that may wait, likewise; None: any.
            max_delay_s: that an interactive request may have to wait, by `precheck`; 0: any.
        """
        self._segment_stats = segment_stats
        self._lock = threading.Lock()
        self.waiting = FairQueue()
        limits = QueueLimits(limit_source_tokens, limit_text_bytes, max_delay_s)
        self.admission = Admission(limits, self.waiting, self._lock)
        self._workers = QueueWorkers(self._lock)
        self._notifier = Notifier()
        self._unfinished = 0
        self._idle = threading.Condition(self._lock)
        self._stopped = False
        # What each worker wanted when it last found nothing that waits: the same once more changes nothing.
        self._wanted_in_vain: list[tuple[int, bool] | None] = []

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `on_progress` of all decodes on this loop; without one, on the engine's threads."""
        self._notifier.bind(loop)

    @property
    def queued_segments(self) -> int:
        """Decodes that wait."""
        return len(self.waiting)

    @property
    def queued_source_tokens(self) -> int:
        """Source tokens of the decodes that wait, of each once for each slot that it takes."""
        return self.waiting.load.source_tokens

    def queued_source_tokens_of(self, priority: Priority) -> int:
        """Count the source tokens of the decodes that wait at one priority."""
        return self.waiting.source_tokens_of(priority)

    @property
    def unfinished(self) -> int:
        """Decodes submitted that have not ended."""
        return self._unfinished

    def submit(self, decodes: Sequence[Decode], *, let_in: bool = False, again: bool = False) -> None:
        """Queue all decodes, or none.

        Args:
            decodes: of one client and priority.
            let_in: see :meth:`Admission.admit`.
            again: likewise.

        Raises:
            DragomanError: see :meth:`Admission.admit`.
        """
        now_s = time.monotonic()
        with self._lock:
            self.admission.admit(decodes, let_in=let_in, again=again)
            for decode in decodes:
                decode.submitted_s = now_s
            self.waiting.push(decodes)
            self._unfinished += len(decodes)
            self._workers.wake(self.waiting.slots)

    def promote(self, decode: Decode, client: str, priority: Priority) -> None:
        """Have a decode wait for another client as well: in that one's turn, if it waits and that comes sooner."""
        with self._lock:
            self.waiting.promote(decode, client, priority)

    def cancel(self, decodes: Iterable[Decode]) -> None:
        """Withdraw decodes, those that wait at once, the others before their next step; nobody is told of them."""
        now_s = time.monotonic()
        with self._lock:
            for decode in decodes:
                decode.cancel_requested = True
                if decode in self.waiting:
                    self.waiting.remove(decode)
                    decode.end_early(now_s)
                    if self._segment_stats is not None:
                        self._segment_stats.enter([decode])
                    self._forget(1)
            self.admission.watch(saturated=self._workers.saturated)

    def close(self) -> None:
        """Refuse whatever comes from now on; what was submitted goes on."""
        with self._lock:
            self.admission.close(DrainingError("the server is shutting down and takes no new request"))

    def stop(self) -> None:
        """Make `take` return None from now on, so that the engine's threads end."""
        with self._lock:
            self._stopped = True
            self._workers.wake_all()

    def fail(self, error: DragomanError) -> None:
        """End every decode that waits, and refuse whatever comes, with an error; one that was closed says so still."""
        with self._lock:
            self.admission.close(error)
            failed = self.waiting.clear()
            self._note_taken(failed)
        for decode in failed:
            decode.fail(error, time.monotonic())
        self.deliver(failed)

    def register_worker(self) -> int:
        """Register a thread that will take; gives its number. Few decodes are left to those registered first."""
        with self._lock:
            self._wanted_in_vain.append(None)
            return self._workers.register()

    def take(
        self, worker: int, room: int, *, wait: bool, demand: int = 0, source_tokens: int | None = None
    ) -> list[Decode] | None:
        """Take the decodes whose turn it is, for an engine thread.

        Args:
            worker: the one that takes.
            room: slots that it has room for.
            wait: block until there is a decode for it.
            demand: slots that it wants to fill before anyone behind it fills one; of what is beyond, it leaves the
                others a share.
            source_tokens: of all of them, each counted once, beyond which no further decode is taken.

        Returns:
            The decodes, perhaps none; None once the engine is to stop.
        """
        wanted = min(demand, room), room > 0
        # Read without the lock: a decode that is submitted just now is taken at the next step.
        if not (wait or self.waiting.slots or self._stopped) and self._wanted_in_vain[worker] == wanted:
            return []
        with self._lock:
            self._workers.demand[worker] = wanted[0]
            while wait and not self._workers.left_for(worker, self.waiting.slots) and not self._stopped:
                self._workers.wait(worker)
            if self._stopped:
                return None
            if not self.waiting.slots:
                self._workers.note_taken(worker, [], 0, room)
                self._wanted_in_vain[worker] = wanted
                return []
            self._wanted_in_vain[worker] = None
            offered = self._workers.offer(worker, self.waiting.slots, room, demand)
            taken = self.waiting.take(offered, source_tokens, room=room)
            self._workers.note_taken(worker, taken, offered, room)
            self._note_taken(taken)
            if self.waiting.slots:
                self._workers.wake(self.waiting.slots, first=worker + 1)
            return taken

    def take_new(self, count: int, held: FairQueue) -> list[Decode]:
        """Take at most `count` decodes, one each of clients of whom a thread, which holds `held`, has none."""
        with self._lock:
            taken = self.waiting.take_new(count, held)
            self._note_taken(taken)
            return taken

    def deliver(self, progressed: Sequence[Decode]) -> None:
        """Tell the callers that wait for these decodes, with one wake-up of the event loop for all."""
        if not progressed:
            return
        finished = [decode for decode in progressed if decode.finished]
        if finished:
            with self._lock:  # counted first: an answer is in the metrics when its caller has it
                self.admission.note_ends(finished)
                if self._segment_stats is not None:
                    self._segment_stats.enter(finished)
        try:
            self._notifier.tell(progressed)
        finally:
            if finished:
                with self._lock:
                    self._forget(len(finished))

    def wait_idle(self, timeout_s: float | None = None) -> bool:
        """Block until everything submitted has ended; False if it has not in time."""
        with self._lock:
            return self._idle.wait_for(lambda: not self._unfinished, timeout_s)

    def _note_taken(self, decodes: Sequence[Decode]) -> None:
        self.admission.note_taken(decodes, saturated=self._workers.saturated)

    def _forget(self, ended: int) -> None:
        self._unfinished -= ended
        if not self._unfinished:
            self._idle.notify_all()


class Notifier:
    """Tells from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `on_progress` of all on this loop from now on; without one, on the thread that tells."""
        self._loop = loop

    def tell(self, progressed: Sequence[Decode]) -> None:
        """Call `on_progress` of all, with one wake-up of the event loop."""
        if self._loop is None:
            notify(progressed)
        else:
            try:
                self._loop.call_soon_threadsafe(notify, progressed)
            except RuntimeError:
                if not self._loop.is_closed():  # else nobody waits any more
                    raise


def notify(news: Sequence[_News]) -> None:
    """Call `on_progress` of all, but of those that were cancelled.

    Raises:
        Exception: what the last of them raised that failed.
    """
    failure: Exception | None = None
    for each in news:
        if each.cancel_requested:
            continue
        try:
            each.on_progress(each)
        except Exception as error:  # one caller's fault must not keep the news from the others
            failure = error
    if failure is not None:
        raise failure
