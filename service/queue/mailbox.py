"""The only crossing between the event loop and the engine's threads: submit, cancel, deliver."""

import asyncio
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from dragoman.errors import DragomanError, DrainingError
from service.decode import Decode, FinishReason, notify
from service.options import Priority
from service.queue.admission import Admission
from service.queue.admission_rules import QueueLimits
from service.queue.fair_queue import FairQueue
from service.telemetry.metrics import ModelMetrics

# Source tokens that keep a thread in the encoder for several decode steps.
_LONG_RUN_TOKENS: Final = 96
_WITHDRAWN: Final = (FinishReason.CANCELLED, FinishReason.DEADLINE)
_FAILED: Final = "INTERNAL"


@dataclass(slots=True, eq=False)
class _Worker:
    """An engine thread that takes decodes.

    Attributes:
        arrived: condition that wakes the thread.
        demand: slots that it will fill at its next step, before later workers get a decode.
        filled: whether it got at its last step all that it can take.
    """

    arrived: threading.Condition
    demand: int = 0
    filled: bool = False

    def note_taken(self, taken: Sequence[Decode], offered: int, room: int) -> None:
        """Note the decodes that it got, with the slots that were offered to it and those that it had room for."""
        slots = sum([decode.slots for decode in taken])
        source_tokens = sum([len(decode.source_ids) for decode in taken])  # the encoder reads each once
        # A worker that will be busy for long leaves further decodes to the others.
        long = slots < offered or source_tokens > _LONG_RUN_TOKENS
        self.demand = 0 if long else max(0, self.demand - slots)
        self.filled = slots >= room or slots < offered


class Mailbox:
    """Decodes that wait for a slot, in fair order, bounded in source tokens, in bytes and by the promised delay.

    Every method may be called from any thread. Calls ask `admission` first.

    Attributes:
        admission: admits or refuses calls.
        waiting: the waiting decodes; other modules only read it.
        unfinished: number of submitted decodes that have not ended.
    """

    def __init__(
        self,
        limit_source_tokens: int,
        metrics: ModelMetrics | None = None,
        *,
        limit_text_bytes: int | None = None,
        max_delay_s: float = 0.0,
    ) -> None:
        """Make an open, empty mailbox; a client without waiting decodes may send any request.

        Args:
            limit_source_tokens: most source tokens that may wait if there is one client alone, see `admission_rules`.
            metrics: count every end once; None: ends are not counted.
            limit_text_bytes: most bytes of their texts, likewise; None: any.
            max_delay_s: longest estimated wait of an interactive request, checked by `precheck`; 0: any.
        """
        self._ends = None if metrics is None else EndCounts(metrics)
        self._lock = threading.Lock()
        self.waiting = FairQueue()
        limits = QueueLimits(limit_source_tokens, limit_text_bytes, max_delay_s)
        self.admission = Admission(limits, self.waiting, self._lock, self.is_saturated)
        self._workers: list[_Worker] = []  # workers that were registered first are served first
        self._loop: asyncio.AbstractEventLoop | None = None
        self.unfinished = 0
        self._stopped = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `on_progress` of all decodes on this loop; without a loop, the engine's threads call it."""
        self._loop = loop

    def submit(self, decodes: Sequence[Decode], *, let_in: bool = False, again: bool = False) -> None:
        """Queue all decodes, or none; the arguments, and the errors, are those of :meth:`Admission.admit`."""
        now_s = time.monotonic()
        with self._lock:
            self.admission.admit(decodes, let_in=let_in, again=again)
            for decode in decodes:
                decode.submitted_s = now_s
            self.waiting.push(decodes)
            self.unfinished += len(decodes)
            self._wake()

    def promote(self, decode: Decode, client: str, priority: Priority) -> None:
        """Move a decode, if it waits, to the turn of another client that wants it too, where that comes sooner."""
        with self._lock:
            self.waiting.promote(decode, client, priority)

    def cancel(self, decodes: Iterable[Decode]) -> None:
        """Withdraw decodes: waiting decodes at once, others before their next step; their callers are not told."""
        now_s = time.monotonic()
        with self._lock:
            for decode in decodes:
                decode.cancel_requested = True
                if decode in self.waiting:
                    self.waiting.remove(decode)
                    decode.end_early(now_s)
                    if self._ends is not None:
                        self._ends.enter([decode])
                    self.unfinished -= 1
            self.admission.watch()

    def close(self) -> None:
        """Refuse further decodes from now on; submitted decodes go on."""
        with self._lock:
            self.admission.close(DrainingError("the server is shutting down and takes no new request"))

    def stop(self) -> None:
        """Make `take` return None from now on, so that the engine's threads end."""
        with self._lock:
            self._stopped = True
            for worker in self._workers:
                worker.arrived.notify()

    def fail(self, error: DragomanError) -> None:
        """End all waiting decodes with an error, and refuse further ones with it.

        A mailbox that was closed before keeps its DrainingError.
        """
        with self._lock:
            self.admission.close(error)
            failed = self.waiting.clear()
            self.admission.note_taken(failed)
        for decode in failed:
            decode.fail(error, time.monotonic())
        self.deliver(failed)

    def register_worker(self) -> int:
        """Register a thread that will take decodes; gives its number. If decodes are few, earlier threads get them."""
        with self._lock:
            self._workers.append(_Worker(threading.Condition(self._lock)))
            return len(self._workers) - 1

    def take(
        self, worker: int, room: int, *, wait: bool, demand: int = 0, source_tokens: int | None = None
    ) -> list[Decode] | None:
        """Take the decodes whose turn it is, for an engine thread.

        Args:
            room: slots that it has room for.
            wait: block until there is a decode for it.
            demand: slots that it fills before later workers get any; of further decodes it takes only its share.
            source_tokens: most source tokens of all of them, each counted once; the first decode may have more.

        Returns:
            The decodes, perhaps none; None once the engine is to stop.
        """
        own, wanted = self._workers[worker], min(demand, room)
        # Where nothing waits, the same demand as before changes nothing. Read without the lock: a decode that is
        # submitted just now is taken at the next step.
        in_vain = not (wait or self.waiting.slots or self._stopped)
        if in_vain and own.demand == wanted and own.filled is (room == 0):
            return []
        with self._lock:
            own.demand = wanted
            while not (left := self._left()[worker]) and wait and not self._stopped:
                own.arrived.wait()
            if self._stopped:
                return None
            share = -(-self.waiting.slots // len(self._workers))
            offered = min(room, max(share, demand), left)
            taken = self.waiting.take(offered, source_tokens, room=room)
            own.note_taken(taken, offered, room)
            self.admission.note_taken(taken)
            self._wake()
            return taken

    def take_new(self, count: int, held: FairQueue) -> list[Decode]:
        """Take at most `count` decodes for a thread: one of each client that has no decode in `held`."""
        with self._lock:
            taken = self.waiting.take_new(count, held)
            self.admission.note_taken(taken)
            return taken

    def is_saturated(self) -> bool:
        """Tell whether each worker got at its last step all that it can take; under the lock."""
        return False not in [worker.filled for worker in self._workers]

    def deliver(self, progressed: Sequence[Decode]) -> None:
        """Tell the callers that wait for these decodes, with one wake-up of the event loop for all."""
        if not progressed:
            return
        finished = [decode for decode in progressed if decode.finished]
        if finished:
            with self._lock:  # counted first: the metrics include an answer before its caller gets it
                self.admission.note_ends(finished)
                if self._ends is not None:
                    self._ends.enter(finished)
        try:
            if self._loop is None:
                notify(progressed)
            else:
                self._loop.call_soon_threadsafe(notify, progressed)
        except RuntimeError:
            if self._loop is None or not self._loop.is_closed():  # a closed loop has no callers
                raise
        finally:
            if finished:
                with self._lock:
                    self.unfinished -= len(finished)

    def _left(self) -> list[int]:
        """Count for each worker the slots of waiting decodes beyond the demand of the workers before it."""
        demands = [worker.demand for worker in self._workers]
        return [max(0, self.waiting.slots - before) for before in accumulate(demands[:-1], initial=0)]

    def _wake(self) -> None:
        """Wake the workers for which decodes are left."""
        for worker, left in zip(self._workers, self._left(), strict=False):
            if left:
                worker.arrived.notify()


class EndCounts:
    """Counts the ends of decodes: by reason, by length, and the tokens that withdrawn decodes saved."""

    def __init__(self, metrics: ModelMetrics) -> None:
        self._metrics = metrics
        self._ended = {reason: metrics.segments_total[reason.name] for reason in FinishReason}
        self._failed = metrics.segments_total[_FAILED]
        self._source_tokens = self._target_tokens = 0  # of decodes that the model ended

    def enter(self, decodes: Iterable[Decode]) -> None:
        """Count decodes that have ended."""
        for decode in decodes:
            if decode.finish_reason is None:
                self._failed.inc()
                continue
            self._ended[decode.finish_reason].inc()
            if decode.scored_ids:  # its translation was given: it tells nothing of how long translations become
                continue
            if decode.finish_reason in _WITHDRAWN:
                self._metrics.cancelled_tokens_saved_total.inc(self._expected_rest(decode))
                continue
            if decode.slots > 1:
                self._metrics.searched_segments_total.inc()
            source_tokens = len(decode.source_ids)
            self._metrics.length_ratio.observe(len(decode.target_ids) / max(source_tokens - 1, 1))
            if decode.finish_reason is FinishReason.EOS:
                self._source_tokens += source_tokens
                self._target_tokens += len(decode.target_ids)

    def _expected_rest(self, decode: Decode) -> float:
        """Estimate the tokens that a withdrawn decode would still have got, from the lengths of earlier decodes."""
        ratio = self._target_tokens / self._source_tokens if self._source_tokens else 1.0
        expected = min(ratio * len(decode.source_ids), decode.max_target_tokens)
        return max(0.0, expected - len(decode.target_ids))
