"""The only crossing between the event loop and the engine's threads: submit, cancel, deliver."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice

from dragoman.errors import DragomanError, DrainingError, QueueFullError
from service.ledger import Ledger
from service.request import Segment


class Mailbox:
    """Segments that wait for a slot, in order of arrival, bounded in source tokens.

    Every method may be called from any thread.
    """

    def __init__(self, limit_source_tokens: int, ledger: Ledger | None = None) -> None:
        """An open, empty mailbox.

        Args:
            limit_source_tokens: tokens that may wait; an empty mailbox takes a larger request all the same.
            ledger: of its own, where every end is entered once; None: nobody counts.
        """
        self._ledger = ledger
        self._limit_source_tokens = limit_source_tokens
        # Ordered: a plain dict finds its first key by passing over all that were removed before it.
        self._waiting: OrderedDict[Segment, None] = OrderedDict()
        self._waiting_tokens = 0
        self._unfinished = 0
        self._refusal: DragomanError | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._arrived: list[threading.Condition] = []  # of each taker
        self._keen: list[int] = []  # how many more segments each taker would take at its next step
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
        return self._waiting_tokens

    @property
    def limit_source_tokens(self) -> int:
        """Source tokens that may wait."""
        return self._limit_source_tokens

    def submit(self, segments: Sequence[Segment]) -> None:
        """Queue all segments, or none.

        Raises:
            QueueFullError: they would wait beyond the limit.
            DrainingError: the mailbox is closed.
            DragomanError: the engine has failed.
        """
        now_s = time.monotonic()
        tokens = sum(len(segment.source_ids) for segment in segments)
        with self._lock:
            if self._refusal is not None:
                # Of one error for all, else its traceback would grow with every caller.
                raise self._refusal.with_traceback(None)
            if self._waiting and self._waiting_tokens + tokens > self._limit_source_tokens:
                raise QueueFullError(
                    f"{self._waiting_tokens} source tokens wait, {tokens} more are above the limit of "
                    f"{self._limit_source_tokens}",
                    metadata={
                        "queued_source_tokens": str(self._waiting_tokens),
                        "request_source_tokens": str(tokens),
                        "limit_source_tokens": str(self._limit_source_tokens),
                    },
                )
            for segment in segments:
                segment.submitted_s = now_s
                self._waiting[segment] = None
            self._waiting_tokens += tokens
            self._unfinished += len(segments)
            self._wake(0)

    def cancel(self, segments: Iterable[Segment]) -> None:
        """Withdraw segments: those that wait at once, the others before their next step.

        `on_progress` is not called for them any more.
        """
        now_s = time.monotonic()
        with self._lock:
            for segment in segments:
                segment.cancel_requested = True
                if segment in self._waiting:
                    self._remove(segment)
                    segment.end_if_unwanted(now_s)
                    self._note_ends([segment])

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
            failed = list(self._waiting)
            self._waiting.clear()
            self._waiting_tokens = 0
        for segment in failed:
            segment.fail(error, time.monotonic())
        self.deliver(failed)

    def enlist(self) -> int:
        """Announce a thread that will take. Few segments are left to the takers that were announced first.

        Returns:
            Its number, which it takes with.
        """
        with self._lock:
            self._arrived.append(threading.Condition(self._lock))
            self._keen.append(0)
            return len(self._arrived) - 1

    def take(
        self, taker: int, room: int, *, wait: bool, keen: int = 0, source_tokens: int | None = None
    ) -> list[Segment] | None:
        """Take the oldest segments, for an engine thread.

        Args:
            taker: who takes.
            room: how many it has room for.
            wait: block until there is one for it.
            keen: how many it wants before anyone behind it gets one; of what is beyond, it leaves the others a share.
            source_tokens: beyond which no further segment is taken.

        Returns:
            The segments, perhaps none; None once the engine is to stop.
        """
        with self._lock:
            self._keen[taker] = min(keen, room)
            while wait and not self._left_for(taker) and not self._stopped:
                self._arrived[taker].wait()
            if self._stopped:
                return None
            share = -(-len(self._waiting) // len(self._arrived))
            offered = min(room, max(share, keen), self._left_for(taker))
            taken: list[Segment] = []
            for segment in islice(self._waiting, offered):
                if taken and source_tokens is not None and source_tokens < len(segment.source_ids):
                    break
                taken.append(segment)
                if source_tokens is not None:
                    source_tokens -= len(segment.source_ids)
            for segment in taken:
                self._remove(segment)
            # One that has all the tokens it wanted will be long at them.
            self._keen[taker] = max(0, self._keen[taker] - len(taken)) if len(taken) == offered else 0
            self._wake(taker + 1)
            return taken

    def deliver(self, progressed: Sequence[Segment]) -> None:
        """Tell whoever waits for these segments, with one wake-up of the event loop for all."""
        if not progressed:
            return
        finished = [segment for segment in progressed if segment.finished]
        try:
            if self._loop is None:
                notify(progressed)
            else:
                with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                    self._loop.call_soon_threadsafe(notify, progressed)
        finally:
            with self._lock:
                self._note_ends(finished)

    def wait_idle(self, timeout_s: float | None = None) -> bool:
        """Block until everything submitted has ended; False if it has not in time."""
        with self._lock:
            return self._idle.wait_for(lambda: not self._unfinished, timeout_s)

    @property
    def unfinished(self) -> int:
        """Segments submitted that have not ended."""
        return self._unfinished

    def _left_for(self, taker: int) -> int:
        """Segments that wait and that nobody before this taker is keen on."""
        return max(0, len(self._waiting) - sum(self._keen[:taker]))

    def _wake(self, first: int) -> None:
        """Wake the takers from `first` on for whom something is left."""
        for taker in range(first, len(self._arrived)):
            if not self._left_for(taker):
                break
            self._arrived[taker].notify()

    def _remove(self, segment: Segment) -> None:
        del self._waiting[segment]
        self._waiting_tokens -= len(segment.source_ids)

    def _note_ends(self, segments: Sequence[Segment]) -> None:
        if self._ledger is not None:
            self._ledger.enter(segments)
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
