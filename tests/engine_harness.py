"""A decode batch without threads, its buffers in outputs, and what a sentence leaves in them alone."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from plugins.gpu.device import DeviceSlots
from plugins.gpu.device_memory import Buffer
from service.decode import Decode
from service.engine.batch import DecodeBatch
from service.engine.encoder_cache import CachingEncoder, EncoderMemoryCache
from service.engine.graphs import Graphs
from service.engine.runner import Runner
from service.options import Decoding, Sampling
from service.queue.mailbox import Mailbox
from service.runtime.host import EncoderSession
from service.runtime.interfaces import Memory, Slots, Step
from service.telemetry.metrics import Metrics


class OpenBatch:
    """A decode batch.

    Attributes:
        batch: it itself.
        slots: its buffers.
        step: its decoder.
    """

    def __init__(
        self,
        manifest: Manifest,
        graphs: Graphs,
        mailbox: Mailbox,
        metrics: Metrics,
        *,
        slots: int,
        cache: EncoderMemoryCache | None = None,
    ) -> None:
        own = metrics.of("m")
        self._decoder = graphs.decoder
        runner = Runner(manifest, graphs.encoder, self, slots, lambda graph: own.failed_runs_total[graph].inc())
        self.batch = DecodeBatch(manifest, runner, cache or EncoderMemoryCache(0, own), mailbox, own)

    def new_step(self, manifest: Manifest, slots: int) -> tuple[Slots, Step]:
        """As the decoder that it stands for, and keep what that gives."""
        self.slots, self.step = self._decoder.new_step(manifest, slots)
        return self.slots, self.step

    def close(self) -> None:
        self._decoder.close()

    def rows(self) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        """[layers, key and value, slots, heads, capacity, head_dim]: own keys and values, and those of the sources."""
        if not isinstance(self.slots, DeviceSlots):
            return self.slots.caches, self.slots.memory
        return _by_slot(self.slots, self.slots.caches), _by_slot(self.slots, self.slots.memory)


def _by_slot(slots: DeviceSlots, buffers: dict[str, Buffer]) -> NDArray[np.generic]:
    if not buffers:  # of a decoder that has states instead
        count, heads, _, head_dim = next(iter(slots.memory.values())).shape
        return np.zeros((0, 2, count, heads, int(slots.target_capacity), head_dim))
    stacked = np.stack([buffer.value.numpy() for buffer in buffers.values()])
    return stacked.reshape(-1, 2, *stacked.shape[1:])[:, :, slots.rows_of]


class Trace(NamedTuple):
    """What the engine decodes, and leaves in its buffers, for one sentence alone.

    caches, memory: [layers, key and value, heads, tokens, head_dim]; log_probabilities: their sum after each step, the
    first before any.
    """

    target_ids: list[int]
    log_probabilities: list[float]
    caches: NDArray[np.generic]
    memory: NDArray[np.generic]


def decode_alone(
    manifest: Manifest,
    graphs: Graphs,
    source: Sequence[int],
    limit: int,
    start_ids: tuple[int, ...] = (),
    sampling: Sampling | None = None,
    scored_ids: tuple[int, ...] = (),
) -> Trace:
    """Decode a sentence in a batch of one slot."""
    mailbox = Mailbox(len(source))
    opened = OpenBatch(manifest, graphs, mailbox, Metrics(), slots=1)
    segment = Decode(
        list(source),
        limit,
        decoding=Decoding.of(log_probability=True, sampling=sampling),
        start_ids=start_ids,
        scored_ids=scored_ids,
    )
    given = len(start_ids[1:])
    mailbox.submit([segment])
    log_probabilities = [segment.log_probability]
    while not segment.finished:
        opened.batch.step(wait=False)
        log_probabilities.append(segment.log_probability)
    caches, memory = opened.rows()
    return Trace(
        segment.target_ids,
        log_probabilities[given:],
        caches[:, :, 0, :, : given + len(segment.target_ids)].copy(),
        memory[:, :, 0, :, : len(source)].copy(),
    )


def look_up_or_encode(encoder: CachingEncoder, sources: Sequence[Sequence[int]]) -> list[Memory]:
    """Memories of sources as a decode batch gets them: looked up, and made where they are not known."""
    memories = encoder.recall(sources)
    unknown = [place for place, memory in enumerate(memories) if memory is None]
    if unknown:
        made = encoder.encode([sources[place] for place in unknown])
        for place, memory in zip(unknown, made, strict=True):
            memories[place] = memory
    return memories


class PlantedError(Exception):
    """What a test makes a run raise."""


def fail_encoder(monkeypatch: pytest.MonkeyPatch, fails: Callable[[Sequence[int]], bool]) -> None:
    """Have each run of the encoder on the host fail that includes such a source."""
    encode = EncoderSession.encode

    def encode_or_fail(encoder: EncoderSession, sources: Sequence[Sequence[int]]) -> object:
        if any(map(fails, sources)):
            raise PlantedError
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", encode_or_fail)
