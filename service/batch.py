"""The decode batch of one thread and its step, read aloud."""

import time
from collections.abc import Sequence

from dragoman.bundle import Manifest
from dragoman.errors import DragomanError
from service.graphs import DecoderSession, DecoderStep, EncoderSession
from service.invariants import Snapshot
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.request import Segment
from service.scheduler import Scheduler
from service.slots import SlotTable


class DecodeBatch:
    """Slots, and the segments in them; belongs to one thread at a time."""

    def __init__(
        self,
        manifest: Manifest,
        encoder: EncoderSession,
        decoder: DecoderSession,
        mailbox: Mailbox,
        metrics: Metrics,
        *,
        slots: int,
        sharers: int,
    ) -> None:
        self._encoder = encoder
        self._mailbox = mailbox
        self._metrics = metrics
        self._sharers = sharers
        self._slots = SlotTable(manifest, slots)
        self._scheduler = Scheduler(slots, manifest.eos_id)
        self._arrivals: list[Segment] = []  # taken, and perhaps not yet in a slot
        self._shown = 0  # active slots, as the metrics have them
        self._decoder_step = DecoderStep(decoder, self._slots)
        metrics.slots.inc(slots)
        metrics.kv_cache_bytes.inc(self._slots.cache_bytes)

    def step(self, *, wait: bool) -> bool:
        """Admit, decode one token of every active slot, deliver. Nothing is visible before the commit.

        Args:
            wait: block while there is nothing to do.

        Returns:
            False once the mailbox was stopped.
        """
        arrivals = self._mailbox.take(self._scheduler.free, self._sharers, wait=wait and not self._scheduler.active)
        if arrivals is None:
            return False
        self._arrivals = arrivals
        rows = self.active
        plan = self._scheduler.plan(arrivals, time.monotonic())
        self._vacate(plan.vacated, rows)
        self._mailbox.deliver(plan.ended)
        for segments in plan.encode:
            self._admit(segments)
        self._arrivals = []
        if self._scheduler.active:
            self._decode()
        self._show_active()
        return True

    @property
    def active(self) -> int:
        """Segments in slots."""
        return len(self._scheduler.active)

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
        failed = [segment for segment in {*active, *self._arrivals} if not segment.finished]
        for segment in failed:
            segment.fail(error, time.monotonic())
        self._show_active()
        self._mailbox.deliver(failed)

    def _admit(self, segments: Sequence[Segment]) -> None:
        start_s = time.monotonic()
        memories = self._encoder.encode([segment.source_ids for segment in segments])
        self._metrics.encode_duration_seconds.observe(time.monotonic() - start_s)
        for segment, memory in zip(segments, memories, strict=True):
            self._slots.fill(self._scheduler.admit(segment), memory)
            self._metrics.source_tokens_total.inc(len(segment.source_ids))
            if segment.submitted_s is not None:
                self._metrics.queue_duration_seconds.observe(start_s - segment.submitted_s)

    def _decode(self) -> None:
        rows = len(self._scheduler.active)
        start_s = time.monotonic()
        ids = self._decoder_step.run(rows).tolist()
        now_s = time.monotonic()
        self._slots.advance(rows)
        result = self._scheduler.commit(ids, now_s)
        self._vacate(result.vacated, rows)
        self._mailbox.deliver(result.progressed)
        self._metrics.decode_step_duration_seconds.observe(now_s - start_s)
        self._metrics.decode_batch_slots.observe(rows)
        self._metrics.target_tokens_total.inc(result.tokens)

    def _show_active(self) -> None:
        self._metrics.slots_active.inc(self.active - self._shown)
        self._shown = self.active

    def _vacate(self, slots: Sequence[int], rows: int) -> None:
        """Repeat the scheduler's moves on the rows: the last one into each vacated slot."""
        for slot in slots:
            rows -= 1
            if slot < rows:
                self._slots.move(rows, slot)
