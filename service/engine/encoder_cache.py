"""The encoder with a cache: the memory of a source is kept across requests, and not computed again."""

import threading
import time
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from service.engine.runner import Encode
from service.lru import LruStore
from service.runtime.interfaces import Memory
from service.telemetry.metrics import ModelMetrics

# Bytes of an entry besides its numbers and its key: objects, and their place in the store. Measured: 420.
_ENTRY_BYTES: Final = 512


class EncoderMemory(NamedTuple):
    """The encoder memory of one source.

    Attributes:
        values: [source tokens, decoder_layers * 2 * heads * head_dim], in the memory of the encoder's device.
        encode_s: seconds that the encoder took; in a run over several sources, the share by source tokens.
    """

    values: Memory
    encode_s: float


class EncoderMemoryCache(LruStore[bytes, EncoderMemory]):
    """Encoder memories of one bundle, by the ids of their sources; shared by all threads of its engine.

    The key is the ids themselves, and a cache belongs to one bundle, whose hashes were checked. The cache is bounded in
    bytes; the least recently used memory is forgotten first.
    """

    def __init__(self, limit_bytes: int, metrics: ModelMetrics) -> None:
        """Make an empty cache.

        Args:
            limit_bytes: limit of its memory, keys and overhead included; 0: nothing is looked up or kept.
        """
        super().__init__(limit_bytes, metrics.encoder_memory_cache_bytes.inc)
        self._lock = threading.Lock()
        self._metrics = metrics

    @staticmethod
    def key(source_ids: Sequence[int]) -> bytes:
        """Make the key under which the memory of a source is kept."""
        return array("i", source_ids).tobytes()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, EncoderMemory]:
        """Find the memories that the cache has."""
        with self._lock:
            return {key: memory for key in keys if (memory := self.get(key)) is not None}

    def keep(self, memories: Mapping[bytes, EncoderMemory]) -> None:
        """Keep a copy of each memory: a view of one row would keep its whole micro-batch in memory."""
        copies = {key: memory._replace(values=_frozen_copy(memory.values)) for key, memory in memories.items()}
        evictions = 0
        with self._lock:
            for key, memory in copies.items():
                evictions += self.put(key, memory, memory.values.nbytes + len(key) + _ENTRY_BYTES)
        self._metrics.encoder_memory_cache_evictions_total.inc(evictions)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            super().clear()


class CachingEncoder:
    """The encoder and its cache, as one decode batch uses them."""

    def __init__(
        self, encode: Encode, cache: EncoderMemoryCache, metrics: ModelMetrics, unknown_id: int | None = None
    ) -> None:
        """Put a cache before an encoder.

        Args:
            encode: computes missing memories; gives None for a source on which it fails.
            cache: cache of the same bundle.
            unknown_id: id of every piece that the model has no token for; None: such pieces are not counted.
        """
        self._encode = encode
        self._cache = cache
        self._metrics = metrics
        self._unknown_id = unknown_id

    def recall(self, sources: Sequence[Sequence[int]]) -> list[Memory | None]:
        """Look up the memories of sources, none empty; None for each source that the cache does not have."""
        if not self._cache.limit_bytes:
            return [None] * len(sources)
        keys = [self._cache.key(source) for source in sources]
        found = self._cache.find(keys)
        if found:
            self._count([found[key] for key in keys if key in found], [])
        return [found[key].values if key in found else None for key in keys]

    def encode(self, sources: Sequence[Sequence[int]]) -> list[Memory | None]:
        """Run the encoder over sources that the cache does not have, equal ones once, and keep the memories.

        Args:
            sources: ids of each source, none empty.

        Returns:
            The memory of each source, [its length, decoder_layers * 2 * heads * head_dim], not to be written to; None
            where the encoder fails on it. A cached memory is the same as a computed one, bit for bit, since a source's
            memory does not depend on the other sources of its run.
        """
        if not self._cache.limit_bytes:
            return [None if memory is None else memory.values for memory in self._run(sources)]
        keys = [self._cache.key(source) for source in sources]
        unique = dict(zip(keys, sources, strict=True))
        run = zip(unique, self._run(list(unique.values())), strict=True)
        made = {key: memory for key, memory in run if memory is not None}
        self._cache.keep(made)
        self._count([made[key] for key in keys if key in made], made.values())
        return [made[key].values if key in made else None for key in keys]

    def _run(self, sources: Sequence[Sequence[int]]) -> list[EncoderMemory | None]:
        start_s = time.monotonic()
        memories = self._encode(sources)
        run_s = time.monotonic() - start_s
        tokens = sum(map(len, sources))
        self._metrics.encode_duration_seconds.observe(run_s)
        self._metrics.source_tokens_total.inc(tokens)
        self._metrics.encoder_padding_tokens_total.inc(len(sources) * max(map(len, sources)) - tokens)
        unknown = sum([ids.count(self._unknown_id) for ids in sources])
        if unknown:
            self._metrics.unknown_pieces_total.inc(unknown)
        return [
            None if memory is None else EncoderMemory(memory, run_s * len(ids) / tokens)
            for memory, ids in zip(memories, sources, strict=True)
        ]

    def _count(self, given: Collection[EncoderMemory], made: Collection[EncoderMemory]) -> None:
        saved_s = sum([memory.encode_s for memory in given]) - sum([memory.encode_s for memory in made])
        self._metrics.encoder_memory_cache_hits_total.inc(len(given) - len(made))
        self._metrics.encoder_memory_cache_misses_total.inc(len(made))
        self._metrics.encoder_memory_cache_saved_seconds_total.inc(max(saved_s, 0.0))  # rounding may leave -1e-17


def _frozen_copy(values: Memory) -> Memory:
    copy = values.copy()
    if isinstance(copy, np.ndarray):  # device memory cannot be written to by mistake
        copy.flags.writeable = False
    return copy
