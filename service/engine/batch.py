"""The decode batch of one thread and its step, read aloud."""

import time
import traceback
from collections.abc import Callable, Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError
from service.engine.encoder_cache import CachingEncoder, EncoderMemoryCache
from service.engine.invariants import Snapshot
from service.engine.isolation import run_isolated
from service.engine.micro_batches import RUN_TOKENS, micro_batches
from service.engine.scheduler import Scheduler, expired_or_cancelled
from service.engine.scores import log_probability
from service.queue.fair_queue import FairQueue
from service.queue.mailbox import Mailbox
from service.runtime.interfaces import Decoder, Encoder, Memory
from service.segment import Segment
from service.telemetry.metrics import Metrics, ModelMetrics

# Segments that are encoded before there is a slot for them, so that the encoder's runs, each of which reads all its
# weights and drives the decoder's out of the processor's cache, are few.
AHEAD = 32
# The same while several clients wait. Encoded segments have left the fair queue, so each one delays a new client.
AHEAD_OF_SEVERAL = 8

# Told of each active segment and its logits [vocabulary_size], a view, after every run of the decoder.
Watch = Callable[[Segment, NDArray[np.floating]], None]

# Segments that one thread decodes before the next is given any: a step of 8 rows costs hardly more than of one,
# and the core that is left serves the event loop.
HANDFUL = 8

_log = structlog.get_logger()


class DecodeBatch:
    """Slots, and the segments in them; belongs to one thread at a time."""

    def __init__(
        self,
        manifest: Manifest,
        encoder: Encoder,
        decoder: Decoder,
        mailbox: Mailbox,
        metrics: ModelMetrics,
        *,
        slots: int,
        cache: EncoderMemoryCache | None = None,
    ) -> None:
        self._encoder = encoder
        self._unknown_id = manifest.unknown_id
        self._memories = self._remembering(cache or EncoderMemoryCache(0, metrics), metrics)
        self._mailbox = mailbox
        self._metrics = metrics
        self._worker = mailbox.register_worker()
        self._slots, self._decoder_step = decoder.new_step(manifest, slots)
        self._scheduler = Scheduler(slots, manifest.eos_id)
        self._arrivals: list[Segment] = []  # taken, and perhaps not yet encoded
        self._ready = FairQueue()  # encoded, not yet in a slot ...
        self._memory_of: dict[Segment, Memory] = {}  # ... and what the encoder made of each
        self._began_s: float | None = None  # when the current step did
        self._shown = 0  # active slots, as the metrics have them
        self._asked = False  # whether a segment in a slot may want its log-probability
        self._watch: Watch | None = None
        self._probe_ids = [manifest.eos_id]  # the shortest source there is: if it fails, everything does
        metrics.slots.inc(slots)
        metrics.kv_cache_bytes.inc(self._slots.cache_bytes)

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
        arrivals = self._take(wait=wait and not self.busy)
        if arrivals is None:
            return False
        self._began_s = time.monotonic()
        try:
            self._work(arrivals)
        finally:
            self._began_s = None
        return True

    def _work(self, arrivals: list[Segment]) -> None:
        self._arrivals = arrivals
        rows = self.active
        plan = self._scheduler.plan(arrivals, time.monotonic())
        self._release(plan.released, rows)
        self._mailbox.deliver(plan.ended)
        self._encode(plan.admitted)
        self._arrivals = []
        self._admit()
        if self._scheduler.active:
            self._decode()
        self._show_active()

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

    def rehearse(self, waves: Sequence[Sequence[Segment]], watch: Watch) -> None:
        """Decode segments to their ends, before the thread runs: mailbox, metrics and caches hear nothing of it.

        Args:
            waves: one joins a step after the other.
            watch: sees what ids are chosen from.

        Raises:
            Exception: as `step`.
        """
        kept = self._mailbox, self._worker, self._metrics, self._memories, self._watch
        tokens = sum(len(segment.source_ids) for wave in waves for segment in wave)
        self._mailbox, self._metrics, self._watch = Mailbox(tokens), Metrics().of("rehearsal"), watch
        self._worker = self._mailbox.register_worker()
        self._memories = self._remembering(EncoderMemoryCache(0, self._metrics), self._metrics)
        try:
            for wave in waves:
                self._mailbox.submit(wave)
                self.step(wait=False)
            while self._mailbox.unfinished:
                self.step(wait=False)
        finally:
            self._mailbox, self._worker, self._metrics, self._memories, self._watch = kept

    def prepare(self) -> None:
        """Do what first runs do, on the thread that will run."""
        self._decoder_step.prepare()

    def encode(self, sources: Sequence[Sequence[int]]) -> list[NDArray[np.generic]]:
        """What one run of the encoder makes of sources, none empty: each [its tokens, decoder_layers * 2 * d_model]."""
        return [np.asarray(memory) for memory in self._encoder.encode(sources)]

    def close(self) -> None:
        """Give back what was prepared; it runs no more."""
        self._decoder_step.close()

    def give_back(self) -> None:
        """Take its slots out of the metrics; it runs no more."""
        self._metrics.slots.dec(len(self._scheduler.active) + self._scheduler.free)
        self._metrics.kv_cache_bytes.dec(self._slots.cache_bytes)

    def snapshot(self) -> Snapshot:
        """For `invariants.violations`."""
        rows = self.active
        return Snapshot(
            active=list(self._scheduler.active),
            slots=rows + self._scheduler.free,
            lengths=self._slots.lengths[:rows].tolist(),
            memory_lengths=self._slots.memory_lengths[:rows].tolist(),
            target_capacity=int(self._slots.target_capacity),
        )

    def fail(self, error: DragomanError) -> None:
        """End every segment that this batch holds with an error."""
        active, self._scheduler.active = self._scheduler.active, []
        ready, self._memory_of = self._ready.clear(), {}
        held = {*active, *self._arrivals, *ready}
        failed = [segment for segment in held if not segment.finished]
        now_s = time.monotonic()
        for segment in failed:
            if not segment.end_early(now_s):
                segment.fail(error, now_s)
        self._show_active()
        self._mailbox.deliver(failed)

    def _remembering(self, cache: EncoderMemoryCache, metrics: ModelMetrics) -> CachingEncoder:
        return CachingEncoder(self._encoder, cache, metrics, self._unknown_id)

    def _take(self, *, wait: bool) -> list[Segment] | None:
        """Take what the free slots need and, since a larger run of the encoder is cheaper, more than that."""
        free = self._scheduler.free - len(self._ready)
        ahead = AHEAD if self._mailbox.waiting_clients < 2 else AHEAD_OF_SEVERAL
        room = free + ahead if free > 0 else 0
        demand = max(0, min(free, HANDFUL - self.active - len(self._ready)))
        taken = self._mailbox.take(self._worker, room, wait=wait, demand=demand, source_tokens=RUN_TOKENS)
        if not room and taken is not None and len(self._ready) > AHEAD_OF_SEVERAL:
            return self._mailbox.take_new(self._scheduler.free, self._ready)
        return taken

    def _encode(self, admitted: Sequence[Segment]) -> None:
        """Get the memories of the arrivals, and queue them for slots."""
        if not admitted:
            return
        start_s = time.monotonic()
        memories = dict(zip(admitted, self._memories.recall([each.source_ids for each in admitted]), strict=True))
        unknown = [segment for segment in admitted if memories[segment] is None]
        for run in micro_batches([len(segment.source_ids) for segment in unknown]):
            segments = [unknown[index] for index in run]
            memories.update(zip(segments, self._run_encoder(segments), strict=True))
            now_s = time.monotonic()
            for segment in segments:
                segment.encoded_s = now_s
        for segment, memory in memories.items():
            segment.encoded_s = segment.encoded_s or start_s
            if memory is None:
                segment.fail_alone(time.monotonic())
                self._mailbox.deliver([segment])
                continue
            self._ready.push([segment])
            self._memory_of[segment] = memory
            if segment.submitted_s is not None:
                self._metrics.queue_duration_seconds.observe(start_s - segment.submitted_s)

    def _admit(self) -> None:
        """Put what is ready into free slots; drop what nobody waits for any more."""
        if not self._memory_of:
            return
        now_s = time.monotonic()
        waiting = list(self._memory_of)
        ended = [waiting[place] for place in expired_or_cancelled(waiting, now_s) if waiting[place].end_early(now_s)]
        for segment in ended:
            self._ready.remove(segment)
            del self._memory_of[segment]
        self._mailbox.deliver(ended)
        for segment in self._ready.take(self._scheduler.free):
            self._slots.fill(self._scheduler.admit(segment), self._memory_of.pop(segment))
            self._asked |= segment.decoding.wants_log_probability

    def _decode(self) -> None:
        rows = len(self._scheduler.active)
        start_s = time.monotonic()
        ids = self._next_ids(rows)
        if self._watch is not None:
            for slot, segment in enumerate(self._scheduler.active):
                self._watch(segment, self._slots.logits_of(slot))
        log_probabilities = self._log_probabilities(ids) if self._asked else {}
        now_s = time.monotonic()
        self._slots.advance(rows)
        result = self._scheduler.commit(ids, now_s, log_probabilities)
        self._release(result.released, rows)
        self._mailbox.deliver(result.progressed)
        self._metrics.decode_step_duration_seconds.observe(now_s - start_s)
        self._metrics.decode_batch_slots.observe(rows)
        self._metrics.target_tokens_total.inc(result.tokens)

    def _run_encoder(self, segments: Sequence[Segment]) -> list[Memory | None]:
        """Make the encoder memory of each segment; None where the encoder fails on it."""
        memories: list[Memory | None] = [None] * len(segments)

        def run(start: int, stop: int) -> None:
            memories[start:stop] = self._memories.encode([segment.source_ids for segment in segments[start:stop]])

        self._isolate(run, len(segments), "encoder", lambda: self._encoder.encode([self._probe_ids]))
        return memories

    def _next_ids(self, rows: int) -> list[int | None]:
        """Run the decoder; None for a slot on which it fails."""
        ids: list[int | None] = [None] * rows

        def run(start: int, stop: int) -> None:
            ids[start:stop] = self._decoder_step.run(stop - start, start).tolist()

        self._isolate(run, rows, "decoder", self._probe_decoder)
        return ids

    def _log_probabilities(self, ids: Sequence[int | None]) -> dict[int, float]:
        """Those of the next ids, by slot, where the segments want them; notes when none does any more."""
        asking = [slot for slot, segment in enumerate(self._scheduler.active) if segment.decoding.wants_log_probability]
        self._asked = bool(asking)
        return {
            slot: log_probability(self._slots.logits_of(slot), token)
            for slot in asking
            if (token := ids[slot]) is not None
        }

    def _isolate(self, run: Callable[[int, int], None], count: int, graph: str, probe: Callable[[], object]) -> None:
        """Run a graph over `count` segments, in halves where it fails; where it fails on all, prove it sound."""

        def note(error: Exception) -> None:
            # Not its message: what a runtime says may hold a caller's data.
            where = traceback.format_tb(error.__traceback__)[-1]
            _log.error("a run failed", graph=graph, error=type(error).__name__, at=where)
            self._metrics.failed_runs_total[graph].inc()

        if len(run_isolated(run, 0, count, note)) == count:
            probe()

    def _probe_decoder(self) -> None:
        """Take a step that must succeed, in the row of a segment that is lost anyway."""
        [memory] = self._encoder.encode([self._probe_ids])
        self._slots.fill(0, memory)
        self._decoder_step.run(1)

    def _show_active(self) -> None:
        if self.active != self._shown:
            self._metrics.slots_active.inc(self.active - self._shown)
            self._shown = self.active

    def _release(self, slots: Sequence[int], rows: int) -> None:
        """Repeat the scheduler's moves on the rows: the last one into each released slot."""
        for slot in slots:
            rows -= 1
            if slot < rows:
                self._slots.move(rows, slot)
