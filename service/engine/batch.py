"""The decode batch of one thread, and its step: take, plan, encode, run, commit, publish."""

import time
from collections.abc import Sequence
from typing import Final

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError
from service.decode import Decode
from service.engine import decode_step
from service.engine.encoder_cache import CachingEncoder, EncoderMemoryCache
from service.engine.invariants import Snapshot
from service.engine.micro_batches import RUN_TOKENS, micro_batches
from service.engine.runner import Runner
from service.engine.scheduler import Scheduler, expired_or_cancelled
from service.queue.fair_queue import FairQueue
from service.queue.mailbox import Mailbox
from service.runtime.interfaces import Memory
from service.telemetry.metrics import ModelMetrics

# Segments that are encoded before there is a slot for them, so that the encoder's runs, each of which reads all its
# weights and drives the decoder's out of the processor's cache, are few.
AHEAD: Final = 32
# The same while several clients wait. Encoded segments have left the fair queue, so each one delays a new client.
AHEAD_OF_SEVERAL: Final = 8
# Segments that one thread decodes before the next is given any: a step of 8 rows costs hardly more than of one,
# and the core that is left serves the event loop.
HANDFUL: Final = 8


class DecodeBatch:
    """The segments that one thread has taken: those in the slots of its runner, and those that are ready for one."""

    def __init__(
        self, manifest: Manifest, runner: Runner, cache: EncoderMemoryCache, mailbox: Mailbox, metrics: ModelMetrics
    ) -> None:
        """Make a batch without segments.

        Args:
            runner: of this batch alone.
            mailbox: where segments come from.
        """
        self.runner = runner
        self._target_capacity = manifest.target_capacity
        self._memories = CachingEncoder(runner.encode, cache, metrics, manifest.unknown_id)
        self._mailbox = mailbox
        self._metrics = metrics
        self._worker = mailbox.register_worker()
        self._scheduler = Scheduler(runner.slots, manifest.eos_id, runner.note_failure)
        self._arrivals: list[Decode] = []  # taken, and perhaps not yet encoded
        self._memory_of: dict[Decode, Memory] = {}  # what the encoder made of each that is not yet in a slot
        self._ready = FairQueue()  # those of them for which no slot was free
        self._strangers = 0  # taken out of turn since the last that were taken in turn
        self._began_s: float | None = None  # when the current step did
        self._shown = 0  # active slots, as the metrics have them
        metrics.slots.inc(runner.slots)
        metrics.kv_cache_bytes.inc(runner.cache_bytes)

    def step(self, *, wait: bool) -> bool:
        """Admit, decode one token of every active slot, deliver. Nothing is visible before the commit.

        A segment that makes a run fail ends with an InternalError; the others do not notice.

        Args:
            wait: block while there is nothing to do.

        Returns:
            False once the mailbox was stopped.

        Raises:
            Exception: runs fail whatever the segment: the engine is broken.
        """
        arrivals = self._take(wait=wait and not (self._scheduler.active or self._memory_of))
        if arrivals is None:
            return False
        self._began_s = now_s = time.monotonic()
        try:
            if arrivals or expired_or_cancelled(self._scheduler.active, now_s):
                self._change(arrivals, now_s)
            if self._memory_of:
                self._admit()
            if self._scheduler.active:
                self._decode()
            elif self._shown:
                self._show_active()
        finally:
            self._began_s = None
        return True

    def _change(self, arrivals: list[Decode], now_s: float) -> None:
        """Encode arrivals, and drop cancelled and late segments."""
        self._arrivals = arrivals
        plan = self._scheduler.plan(arrivals, now_s)
        if plan.ended:
            try:
                self.runner.release(plan.moves)
            finally:
                self._mailbox.deliver(plan.ended)
        if plan.admitted:
            self._encode(plan.admitted)
        self._arrivals = []

    @property
    def step_age_s(self) -> float:
        """Seconds since the current step began, 0 between two; for any thread."""
        began_s = self._began_s  # once: the step may end meanwhile
        return 0.0 if began_s is None else time.monotonic() - began_s

    @property
    def active(self) -> int:
        """Segments in slots."""
        return len(self._scheduler.active)

    @property
    def busy(self) -> bool:
        """Whether segments are in slots or ready for one."""
        return bool(self._scheduler.active or self._memory_of)

    def forget_metrics(self) -> None:
        """Take its slots out of the metrics; it runs no more."""
        self._metrics.slots.dec(self.runner.slots)
        self._metrics.kv_cache_bytes.dec(self.runner.cache_bytes)

    def snapshot(self) -> Snapshot:
        """Copy the state for `invariants.violations`."""
        lengths, memory_lengths = self.runner.lengths
        return Snapshot(
            active=list(self._scheduler.active),
            slots=self.runner.slots,
            lengths=lengths,
            decoded=self._scheduler.decoded(),
            memory_lengths=memory_lengths,
            target_capacity=self._target_capacity,
        )

    def fail(self, error: DragomanError) -> None:
        """End every segment that this batch holds with an error."""
        self._ready.clear()
        ready, self._memory_of = self._memory_of, {}
        self.runner.clear()
        held = {*self._scheduler.clear(), *self._arrivals, *ready}
        failed = [decode for decode in held if not decode.finished]
        now_s = time.monotonic()
        for decode in failed:
            if not decode.end_early(now_s):
                decode.fail(error, now_s)
        self._show_active()
        self._mailbox.deliver(failed)

    def _take(self, *, wait: bool) -> list[Decode] | None:
        """Take what the free slots need and, since a larger run of the encoder is cheaper, more than that.

        Segments that were taken while one client waited delay no new client: of those that come meanwhile, one each is
        taken at once. These are at most `AHEAD`, so that everybody's turns in the mailbox go on soon.
        """
        free, room = self._scheduler.free - self._ready.slots, 0
        if free > 0:
            waiting = self._mailbox.waiting
            room = free + (AHEAD_OF_SEVERAL if waiting.slots and waiting.clients > 1 else AHEAD)
        demand = max(0, min(free, HANDFUL - len(self._scheduler.active) - self._ready.slots))
        taken = self._mailbox.take(self._worker, room, wait=wait, demand=demand, source_tokens=RUN_TOKENS)
        if room:
            self._strangers = 0
        elif taken is not None and len(self._ready) > AHEAD_OF_SEVERAL:
            taken = self._mailbox.take_new(min(self._scheduler.free, AHEAD - self._strangers), self._ready)
            self._strangers += len(taken)
        return taken

    def _encode(self, admitted: Sequence[Decode]) -> None:
        """Get the memories of the arrivals."""
        start_s = time.monotonic()
        memories = dict(zip(admitted, self._memories.recall([each.source_ids for each in admitted]), strict=True))
        unknown = [decode for decode in admitted if memories[decode] is None]
        for run in micro_batches([len(decode.source_ids) for decode in unknown]) if unknown else ():
            decodes = [unknown[index] for index in run]
            memories.update(zip(decodes, self._memories.encode([each.source_ids for each in decodes]), strict=True))
            now_s = time.monotonic()
            for decode in decodes:
                decode.encoded_s = now_s
        for decode, memory in memories.items():
            decode.encoded_s = decode.encoded_s or start_s
            if memory is None:
                decode.fail_alone(time.monotonic())
                self._mailbox.deliver([decode])
                continue
            self._memory_of[decode] = memory
            if decode.submitted_s is not None:
                self._metrics.queue_duration_seconds.observe(start_s - decode.submitted_s)

    def _admit(self) -> None:
        """Put encoded segments into free slots, and drop cancelled and late ones."""
        now_s = time.monotonic()
        waiting = list(self._memory_of)
        ended = [waiting[place] for place in expired_or_cancelled(waiting, now_s) if waiting[place].end_early(now_s)]
        for decode in ended:
            if decode in self._ready:
                self._ready.remove(decode)
            del self._memory_of[decode]
        if ended:
            self._mailbox.deliver(ended)
        for decode in self._next(self._scheduler.free):
            decode_step.admit(self.runner, self._scheduler, decode, self._memory_of.pop(decode))
            if decode.finished:
                self._mailbox.deliver([decode])

    def _next(self, free: int) -> Sequence[Decode]:
        """Choose which of those that are encoded get the free slots."""
        if not self._ready.slots and sum([decode.slots for decode in self._memory_of]) <= free:
            return list(self._memory_of)  # in the order in which they were taken
        if len(self._ready) < len(self._memory_of):
            self._ready.push([decode for decode in self._memory_of if decode not in self._ready])
        return self._ready.take(free)

    def _decode(self) -> None:
        rows = len(self._scheduler.active)
        start_s = time.monotonic()
        selection = decode_step.run(self.runner, self._scheduler)
        now_s = time.monotonic()
        result = self._scheduler.commit(selection, now_s)
        try:
            if result.changes_slots:
                decode_step.apply(self.runner, result)
        finally:  # what has ended is told, whatever becomes of the slots
            # Counted first: an answer is in the metrics when its caller has it.
            self._metrics.decode_step_duration_seconds.observe(now_s - start_s)
            self._metrics.decode_batch_slots.observe(rows)
            self._metrics.target_tokens_total.inc(result.tokens)
            if len(self._scheduler.active) != self._shown:
                self._show_active()
            if result.progressed:
                self._mailbox.deliver(result.progressed)

    def _show_active(self) -> None:
        active = len(self._scheduler.active)
        self._metrics.slots_active.inc(active - self._shown)
        self._shown = active
