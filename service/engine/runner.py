"""The graphs over the slots of one thread: encode, admit, step, release; no queue, no metrics.

A run that fails is run again in halves, until each segment on which it fails stands alone. Where every segment fails,
the shortest source there is has to pass, or the engine is broken.
"""

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import structlog
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from service.engine.beam import Best
from service.engine.isolation import run_halves, run_isolated
from service.runtime.interfaces import Decoder, Encoder, Memory

Graph = Literal["encoder", "decoder", "search"]

_log = structlog.get_logger()


class Runner:
    """Slots, the first of which hold a segment each; belongs to one thread at a time.

    Attributes:
        slots: how many there are.
        active: how many hold a segment.
        has_shortlist: whether segments choose from their own candidates.
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
            encoder: of the same bundle; other runners may share it.
            decoder: likewise.
            slots: how many.
            on_failure: told of each run that fails.

        Raises:
            MemoryError: there is no memory for them.
        """
        self._encoder = encoder
        self._slots, self._step = decoder.new_step(manifest, slots)
        self._probe_ids = [manifest.eos_id]  # the shortest source there is: if it fails, everything does
        self.slots = slots
        self.active = 0
        self.has_shortlist = self._slots.outputs is not None
        self._on_failure = on_failure

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for keys and values, own ones and the sources'."""
        return self._slots.cache_bytes

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """Tokens in the cache and source tokens, of each active slot."""
        return self._slots.rows.lengths_of(self.active)

    def prepare(self) -> None:
        """Do what first runs do, on the thread that will run; no slot is active."""
        self._step.prepare()

    def close(self) -> None:
        """Give back what was prepared; there is no run after it."""
        self._step.close()

    def encode(self, sources: Sequence[Sequence[int]]) -> list[Memory | None]:
        """Run the encoder over a micro-batch.

        Args:
            sources: ids of each source, none empty.

        Returns:
            The memory of each source, [its tokens, decoder_layers * 2 * heads * head_dim]; None where the encoder fails
            on it.

        Raises:
            Exception: the encoder fails whatever the source: the engine is broken.
        """
        memories: list[Memory | None] = [None] * len(sources)

        def run(start: int, stop: int) -> None:
            memories[start:stop] = self._encoder.encode(sources[start:stop])

        self._isolate(run, len(sources), "encoder", self._encode_probe)
        return memories

    def admit(
        self,
        memory: Memory,
        start_id: int | None = None,
        source_ids: Sequence[int] = (),
        given_ids: Sequence[int] = (),
    ) -> int:
        """Begin a segment in the next slot; gives the slot.

        Args:
            memory: of its source, from `encode`.
            start_id: what the decoder is given first; None: the model's start id.
            source_ids: of the segment; read where there is a shortlist.
            given_ids: target ids that the caller asks for, which a shortlist may lack.
        """
        self._slots.fill(self.active, memory)
        if self._slots.outputs is not None:
            self._slots.outputs.restrict(self.active, source_ids, given_ids)
        if start_id is not None:
            self._slots.force(self.active, start_id)
        self.active += 1
        return self.active - 1

    def step(self) -> list[int | None]:
        """Decode one token of every active slot; nothing has changed where that raises.

        Returns:
            The next ids; None for a slot on which the decoder fails.

        Raises:
            Exception: the decoder fails whatever the slot: the engine is broken.
        """
        ids: list[int | None]
        try:
            ids = self._step.run(self.active).tolist()
        except Exception as error:
            ids = self._step_in_halves(error)
        self._slots.commit(self.active)
        return ids

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give what the slot's next id was chosen from, [vocabulary_size]; good until the next step."""
        return self._slots.logits_of(slot)

    def attention_of(self, slot: int) -> NDArray[np.float32]:
        """Give how much the last step looked at each token of the slot's source, [source tokens]."""
        return self._slots.attention_of(slot)

    def search(self, asked: Mapping[int, Sequence[int]], count: int) -> dict[int, Best]:
        """Find the best next tokens of some slots, by the logits of the last step.

        Args:
            asked: slots, each with tokens whose log-probabilities are wanted besides.
            count: of each, from 1; fewer where the vocabulary has fewer.

        Returns:
            Those of each slot, but for slots on which the search fails.

        Raises:
            Exception: the search fails whatever the slot: the engine is broken.
        """
        first, behind = min(asked), max(asked) + 1
        ids = np.zeros((behind - first, max(map(len, asked.values()))), np.int64)
        for slot, tokens in asked.items():
            ids[slot - first, : len(tokens)] = tokens
        found: dict[int, Best] = {}

        def run(start: int, stop: int) -> None:
            candidates = self._step.best(first + start, count, ids[start:stop])
            best = map(Best, *(values.tolist() for values in candidates))
            found.update(enumerate(best, first + start))

        self._isolate(run, behind - first, "search", lambda: run(0, 1))
        return found

    def fork(self, slots: Iterable[int]) -> None:
        """Begin segments in the next slots that are as those in other slots."""
        for source in slots:
            self._slots.fork(source, self.active)
            self.active += 1

    def copy(self, copies: Iterable[tuple[int, int, int]]) -> None:
        """Let slots go on as others of the same source.

        Args:
            copies: the slot to go on as, the slot that does, and the first position at which they differ.
        """
        for source, target, first in copies:
            self._slots.copy(source, target, first)

    def force(self, tokens: Iterable[tuple[int, int]]) -> None:
        """Let slots go on, after a step, from another token than it chose.

        Args:
            tokens: slots with the id of the token.
        """
        for slot, token in tokens:
            self._slots.force(slot, token)

    def release(self, moves: Sequence[tuple[int, int]]) -> None:
        """Take segments out of their slots.

        Args:
            moves: for each, in order, the last active slot and the slot that it moves to; the same: it leaves itself.
        """
        for source, target in moves:
            if source != target:
                self._slots.move(source, target)
            self.active -= 1

    def clear(self) -> None:
        """Take all segments out of their slots."""
        self.active = 0

    def note_failure(self, error: Exception) -> None:
        """Log an error that ends one segment: its class and where, since what it says may hold a caller's data."""
        _log.error("a segment failed", error=type(error).__name__, at=_where(error))

    def _step_in_halves(self, error: Exception) -> list[int | None]:
        """Decode one token of every active slot, after a run over all of them has failed."""
        ids: list[int | None] = [None] * self.active

        def run(start: int, stop: int) -> None:
            ids[start:stop] = self._step.run(stop - start, start).tolist()

        self._isolate(run, self.active, "decoder", self._decode_probe, error)
        return ids

    def _isolate(
        self,
        run: Callable[[int, int], None],
        count: int,
        graph: Graph,
        probe: Callable[[], None],
        failed: Exception | None = None,
    ) -> None:
        """Run a graph over `count` segments, in halves where it fails; where it fails on all, prove it sound.

        Args:
            run: does the work of some of them.
            count: how many.
            graph: its name.
            probe: runs the graph over what must not fail.
            failed: the error of the run over all of them, if that was tried.
        """

        def note(error: Exception) -> None:
            _log.error("a run failed", graph=graph, error=type(error).__name__, at=_where(error))
            self._on_failure(graph)

        alone = run_isolated(run, 0, count, note) if failed is None else run_halves(failed, run, 0, count, note)
        if len(alone) == count:
            probe()

    def _encode_probe(self) -> None:
        self._encoder.encode([self._probe_ids])

    def _decode_probe(self) -> None:
        """Take a step that must succeed, in the row of a segment that is lost anyway."""
        [memory] = self._encoder.encode([self._probe_ids])
        self._slots.fill(0, memory)
        if self._slots.outputs is not None:
            self._slots.outputs.restrict(0, self._probe_ids, ())
        self._step.run(1)


def _where(error: Exception) -> str:
    # Not its message: what a runtime says may hold a caller's data.
    return traceback.format_tb(error.__traceback__)[-1]
