"""The work of every thread that decodes, with or without a server: encode, admit, step; no queue, no metrics.

A run that fails is run again in halves, until each segment on which it fails is alone. Where every segment fails, a run
with the shortest possible source must succeed; else the engine is broken.
"""

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import structlog
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from service.decode import Decode
from service.engine.isolation import run_halves, run_isolated
from service.engine.micro_batches import micro_batches
from service.engine.scheduler import Scheduler
from service.engine.step import Asked, Best, Copy, Edit, Force, Fork, Move, Step
from service.runtime.interfaces import Decoder, Encoder, Memory, RunSize

Graph = Literal["encoder", "decoder", "search"]
# The memory of each source of a micro-batch; None where the encoder fails on it.
Encode = Callable[[Sequence[Sequence[int]]], Sequence[Memory | None]]
# Called with each active segment and its logits [vocabulary_size], a view, after every run of the decoder.
Watch = Callable[[Decode, NDArray[np.floating]], None]

_log = structlog.get_logger()


class Runner:
    """The slots of one thread, and the graphs that are run over the active ones; belongs to one thread at a time.

    Attributes:
        slots: number of slots.
        table: buffers of the slots.
        run_size: limits and cost of the encoder's runs.
        scheduler: holds the segments in the slots.
    """

    def __init__(
        self,
        manifest: Manifest,
        encoder: Encoder,
        decoder: Decoder,
        slots: int,
        on_failure: Callable[[Graph], None] = lambda graph: None,
    ) -> None:
        """Reserve the slots.

        Args:
            encoder: encoder of the same bundle; other runners may share it.
            decoder: likewise, the decoder.
            on_failure: called for each run that fails.

        Raises:
            MemoryError: there is no memory for the slots.
        """
        self._encoder = encoder
        self.run_size = encoder.run_size
        self.slots = slots
        self.table, self._step = decoder.new_step(manifest, slots)
        self.scheduler = Scheduler(slots, manifest.eos_id, _note_failure)
        self._probe = Decode([manifest.eos_id], 1)  # the shortest possible source: if it fails, every source fails
        self._on_failure = on_failure

    def prepare(self) -> None:
        """Do the one-time work of first runs, on the thread of the runs; no slot is active."""
        self._step.prepare()

    def close(self) -> None:
        """Free what was prepared; there is no run after it."""
        self._step.close()

    def encode(self, sources: Sequence[Sequence[int]]) -> list[Memory | None]:
        """Run the encoder over a micro-batch.

        Args:
            sources: ids of each source, none empty.

        Returns:
            The memory of each source, [its tokens, decoder_layers * 2 * heads * head_dim]; None where the encoder fails
            on it.

        Raises:
            Exception: the encoder fails on every source: the engine is broken.
        """
        memories: list[Memory | None] = [None] * len(sources)

        def run(start: int, stop: int) -> None:
            memories[start:stop] = self._encoder.encode(sources[start:stop])

        self._isolate(run, len(sources), "encoder", self._encode_probe)
        return memories

    def admit(self, decode: Decode, memory: Memory) -> None:
        """Give a segment the next slots; if that fails, the segment ends with an error, and nothing else has changed.

        Args:
            decode: takes no more slots than are free.
            memory: memory of its source, from `encode`.
        """
        try:
            self.fill(len(self.scheduler.active), decode, memory)
            self.scheduler.admit(decode)
        except Exception as error:
            _note_failure(error)
            decode.fail_alone(time.monotonic())

    def step(self, watch: Watch | None = None) -> Step:
        """Decode one token of every active slot, and commit it; the caller has to `apply` the edits of the step.

        Raises:
            Exception: the decoder fails on every slot, and nothing has changed: the engine is broken.
        """
        scheduler = self.scheduler
        tokens = self.run(len(scheduler.active))
        if watch is not None:
            for slot, row in enumerate(scheduler.active):
                watch(row.decode, self.table.logits_of(slot))
        asked = scheduler.ask(tokens, self.table)
        best = self.search(asked) if asked else {}
        return scheduler.commit(tokens, best, time.monotonic())

    def fill(self, slot: int, decode: Decode, memory: Memory) -> None:
        """Begin a segment in a slot, with the memory of its source from `encode`; all later slots are free."""
        self.table.fill(slot, memory)
        if self.table.outputs is not None:
            self.table.outputs.restrict(slot, decode.source_ids, decode.given_ids)
        if decode.start_ids:
            self.table.force(slot, decode.start_ids[0])

    def run(self, slots: int) -> list[int | None]:
        """Decode one token of each of the first slots; if it raises, nothing has changed.

        Returns:
            The next ids; None for a slot on which the decoder fails.

        Raises:
            Exception: the decoder fails on every slot: the engine is broken.
        """
        ids: list[int | None]
        try:
            ids = self._step.run(slots).tolist()
        except Exception as error:
            ids = self._run_in_halves(slots, error)
        self.table.commit(slots)
        return ids

    def search(self, asked: Mapping[int, Asked]) -> dict[int, Best]:
        """Find the best next tokens of some slots, by the logits of the last step.

        Args:
            asked: the wanted tokens of each slot; the result may have more, or fewer where the vocabulary has fewer.

        Returns:
            The best tokens of each slot, except for slots on which the search fails.

        Raises:
            Exception: the search fails on every slot: the engine is broken.
        """
        first, behind = min(asked), max(asked) + 1
        count = max(each.best for each in asked.values())
        ids = np.zeros((behind - first, max(len(each.ids) for each in asked.values())), np.int64)
        for slot, each in asked.items():
            ids[slot - first, : len(each.ids)] = each.ids
        found: dict[int, Best] = {}

        def run(start: int, stop: int) -> None:
            candidates = self._step.best(first + start, count, ids[start:stop])
            best = map(Best, *(values.tolist() for values in candidates))
            found.update(enumerate(best, first + start))

        self._isolate(run, behind - first, "search", lambda: self._search_probe(asked))
        return found

    def apply(self, edits: Iterable[Edit]) -> None:
        """Apply the edits of a step to the slots, in order."""
        for edit in edits:
            match edit:
                case Copy():
                    self.table.copy(*edit)
                case Fork():
                    self.table.fork(*edit)
                case Force():
                    self.table.force(*edit)
                case Move():
                    self.table.move(*edit)

    def _run_in_halves(self, slots: int, error: Exception) -> list[int | None]:
        """Decode one token of each of the first slots, after a run over all of them has failed."""
        ids: list[int | None] = [None] * slots

        def run(start: int, stop: int) -> None:
            ids[start:stop] = self._step.run(stop - start, start).tolist()

        self._isolate(run, slots, "decoder", self._decode_probe, error)
        return ids

    def _isolate(
        self,
        run: Callable[[int, int], None],
        count: int,
        graph: Graph,
        probe: Callable[[], object],
        failed: Exception | None = None,
    ) -> None:
        """Run a graph over `count` segments, in halves where it fails; where it fails on all of them, run the probe.

        Args:
            probe: runs the graph over an input that must not fail.
            failed: the error of the run over all segments, if that was tried.
        """

        def note(error: Exception) -> None:
            _log.error("a run failed", graph=graph, error=type(error).__name__, at=_where(error))
            self._on_failure(graph)

        alone = run_isolated(run, 0, count, note) if failed is None else run_halves(failed, run, 0, count, note)
        if len(alone) == count:
            probe()

    def _encode_probe(self) -> Memory:
        [memory] = self._encoder.encode([self._probe.source_ids])
        return memory

    def _decode_probe(self) -> None:
        """Run a step that must succeed, in the slot of a segment that has failed already."""
        self.fill(0, self._probe, self._encode_probe())
        self._step.run(1)

    def _search_probe(self, failed: Mapping[int, Asked]) -> None:
        """Run a search that must succeed: over a slot that asked for none, or else over the probe in a failed slot."""
        slot = next((slot for slot in range(len(self.scheduler.active)) if slot not in failed), None)
        if slot is None:
            slot = 0
            self._decode_probe()
        self._step.best(slot, 1, np.zeros((1, 1), np.int64))


def encode(decodes: Sequence[Decode], run: Encode, size: RunSize) -> Iterator[tuple[Decode, Memory | None]]:
    """Encode segments in micro-batches; yields each after its run, and ends one on which the encoder fails."""
    for indices in micro_batches([len(decode.source_ids) for decode in decodes], size.tokens, size.cost):
        batch = [decodes[index] for index in indices]
        for decode, memory in zip(batch, run([each.source_ids for each in batch]), strict=True):
            if memory is None:
                decode.fail_alone(time.monotonic())
            yield decode, memory


def _note_failure(error: Exception) -> None:
    """Log the class and the place of an error that ends one segment; its message may hold a caller's data.

    It is no method: the scheduler keeps a reference to it, and a method would keep the slots of an unused runner.
    """
    _log.error("a segment failed", error=type(error).__name__, at=_where(error))


def _where(error: Exception) -> str:
    # Without the error's message, which may hold a caller's data.
    return traceback.format_tb(error.__traceback__)[-1]
