"""The decode batch of one thread, and its step: take, encode, admit, run, commit, publish."""

import time
from collections.abc import Sequence
from typing import Final

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError
from service.decode import Decode, DecodeStatus
from service.engine.encoder_cache import CachingEncoder, EncoderMemoryCache
from service.engine.runner import Runner, encode
from service.engine.scheduler import end_early
from service.engine.step import Edit
from service.queue.fair_queue import FairQueue
from service.queue.mailbox import Mailbox
from service.runtime.interfaces import Memory
from service.telemetry.metrics import ModelMetrics

# Segments that one thread decodes before the next thread gets any: a step of 16 rows costs less than two steps of 8,
# and the free core serves the event loop.
HANDFUL: Final = 16


class DecodeBatch:
    """The segments that one thread has taken: some are in the slots of its runner, others are ready for a slot."""

    def __init__(
        self, manifest: Manifest, runner: Runner, cache: EncoderMemoryCache, mailbox: Mailbox, metrics: ModelMetrics
    ) -> None:
        """Make a batch without segments.

        Args:
            runner: used by this batch alone.
            mailbox: source of the segments.
        """
        self.runner = runner
        self._memories = CachingEncoder(runner.encode, cache, metrics, manifest.unknown_id)
        self._mailbox = mailbox
        self._metrics = metrics
        self._worker = mailbox.register_worker()
        self._run_size = runner.run_size
        self._scheduler = runner.scheduler
        self._arrivals: list[Decode] = []  # taken, and perhaps not yet encoded
        self._memory_of: dict[Decode, Memory] = {}  # memories of segments that are not yet in a slot
        self._ready = FairQueue()  # encoded segments for which no slot was free
        self._strangers = 0  # segments taken out of turn since the last ones were taken in turn
        self._began_s: float | None = None  # when the current step began
        self._shown = 0  # active slots, as the metrics show them
        metrics.slots.inc(runner.slots)
        metrics.kv_cache_bytes.inc(runner.table.cache_bytes)

    def step(self, *, wait: bool) -> bool:
        """Admit, decode one token of every active slot, deliver. Nothing is visible before the commit.

        A segment that makes a run fail ends with an InternalError; the other segments are not affected. With `wait`, it
        blocks while there is nothing to do.

        Returns:
            False once the mailbox was stopped.

        Raises:
            Exception: runs fail with every segment: the engine is broken.
        """
        arrivals = self._take(wait=wait and not (self._scheduler.active or self._memory_of))
        if arrivals is None:
            return False
        self._began_s = now_s = time.monotonic()
        try:
            if ended := end_early([row.decode for row in self._scheduler.active], now_s):
                self._publish(ended, self._scheduler.release())
            if arrivals:
                self._encode(arrivals, now_s)
            if self._memory_of:
                self._admit()
            if self._scheduler.active:
                self._decode()
            elif self._shown:
                self._show_active()
        finally:
            self._began_s = None
        return True

    @property
    def step_age_s(self) -> float:
        """Seconds since the current step began, 0 between two steps; for any thread."""
        began_s = self._began_s  # once: the step may end meanwhile
        return 0.0 if began_s is None else time.monotonic() - began_s

    def forget_metrics(self) -> None:
        """Remove the slots of this batch from the metrics; there is no step after it."""
        self._metrics.slots.dec(self.runner.slots)
        self._metrics.kv_cache_bytes.dec(self.runner.table.cache_bytes)

    def fail(self, error: DragomanError) -> None:
        """End every segment that this batch holds with an error."""
        self._ready.clear()
        ready, self._memory_of = self._memory_of, {}
        held = {*self._scheduler.clear(), *self._arrivals, *ready}
        failed = [decode for decode in held if not decode.finished]
        now_s = time.monotonic()
        for decode in failed:
            if not decode.end_early(now_s):
                decode.fail(error, now_s)
        self._show_active()
        self._mailbox.deliver(failed)

    def _take(self, *, wait: bool) -> list[Decode] | None:
        """Take segments for the free slots, and some more, since a larger run of the encoder is cheaper.

        Segments that were taken while only one client waited do not delay new clients: one segment of each new client
        is taken at once. There are at most `ahead` of these, so that the normal turns in the mailbox continue soon.
        """
        free, room, size = self._scheduler.free - self._ready.slots, 0, self._run_size
        if free > 0:
            waiting = self._mailbox.waiting
            room = free + (size.ahead_of_several if waiting.slots and waiting.clients > 1 else size.ahead)
        demand = max(0, min(free, HANDFUL - len(self._scheduler.active) - self._ready.slots))
        taken = self._mailbox.take(self._worker, room, wait=wait, demand=demand, source_tokens=size.tokens)
        if room:
            self._strangers = 0
        elif taken is not None and len(self._ready) > size.ahead_of_several:
            taken = self._mailbox.take_new(min(self._scheduler.free, size.ahead - self._strangers), self._ready)
            self._strangers += len(taken)
        return taken

    def _encode(self, arrivals: list[Decode], now_s: float) -> None:
        """Get the encoder memories of arrivals; cancelled and late arrivals are ended instead."""
        self._arrivals = arrivals
        if ended := end_early(arrivals, now_s):
            self._mailbox.deliver(ended)
        admitted = [decode for decode in arrivals if decode not in ended]
        for decode in admitted:
            decode.status, decode.admitted_s = DecodeStatus.ENCODING, now_s
        memories = dict(zip(admitted, self._memories.recall([each.source_ids for each in admitted]), strict=True))
        unknown = [decode for decode, memory in memories.items() if memory is None]
        if unknown:
            for decode, made in encode(unknown, self._memories.encode, self._run_size):
                if made is None:  # delivered now: a later run may show that the engine is broken
                    self._mailbox.deliver([decode])
                else:
                    memories[decode], decode.encoded_s = made, time.monotonic()
        for decode, memory in memories.items():
            if memory is None:
                continue
            decode.encoded_s = decode.encoded_s or now_s
            self._memory_of[decode] = memory
            if decode.submitted_s is not None:
                self._metrics.queue_duration_seconds.observe(now_s - decode.submitted_s)
        self._arrivals = []

    def _admit(self) -> None:
        """Put encoded segments into free slots, and drop cancelled and late ones."""
        if ended := end_early(self._memory_of, time.monotonic()):
            for decode in ended:
                if decode in self._ready:
                    self._ready.remove(decode)
                del self._memory_of[decode]
            self._mailbox.deliver(ended)
        free = self._scheduler.free
        if not self._ready.slots and sum([decode.slots for decode in self._memory_of]) <= free:
            chosen = list(self._memory_of)  # in the order in which they were taken
        else:
            if len(self._ready) < len(self._memory_of):
                self._ready.push([decode for decode in self._memory_of if decode not in self._ready])
            chosen = self._ready.take(free)
        for decode in chosen:
            self.runner.admit(decode, self._memory_of.pop(decode))
            if decode.finished:
                self._mailbox.deliver([decode])

    def _decode(self) -> None:
        rows = len(self._scheduler.active)
        start_s = time.monotonic()
        step = self.runner.step()
        # Counted first: the metrics include an answer before its caller gets it.
        self._metrics.decode_step_duration_seconds.observe(step.now_s - start_s)
        self._metrics.decode_batch_slots.observe(rows)
        self._metrics.target_tokens_total.inc(step.target_tokens)
        if len(self._scheduler.active) != self._shown:
            self._show_active()
        if step.edits or step.progressed:
            self._publish(step.progressed, step.edits)

    def _publish(self, progressed: Sequence[Decode], edits: Sequence[Edit]) -> None:
        """Apply the edits to the slots, and deliver the segments even if an edit fails."""
        try:
            self.runner.apply(edits)
        finally:
            self._mailbox.deliver(progressed)

    def _show_active(self) -> None:
        active = len(self._scheduler.active)
        self._metrics.slots_active.inc(active - self._shown)
        self._shown = active
