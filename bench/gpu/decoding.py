"""The engine's own decode batch, driven by one thread without a server: what most parts of `bench.gpu` measure."""

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import onnxruntime

from bench.peers.contender import Sentences
from dragoman.bundle import Bundle, Manifest
from service.engine.batch import DecodeBatch
from service.engine.dry_run import Watch, decode
from service.engine.encoder_cache import EncoderMemoryCache
from service.engine.runner import Runner
from service.queue.mailbox import Mailbox
from service.runtime.device import DeviceDecoder, DeviceEncoder
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.interfaces import Decoder, Encoder
from service.segment import Segment
from service.telemetry.metrics import Metrics

_NO_ID: Final = -1  # an end-of-sentence id that no row decodes
_NO_CAPTURE: Final = -1  # what onnxruntime takes for: record no CUDA graph
_FIRST_ID: Final = 4  # those before it are no pieces of text


@dataclass(frozen=True)
class Graphs:
    """The opened graphs of a bundle.

    Attributes:
        manifest: of the bundle.
        encoder: its encoder.
        decoder: its decoder.
    """

    manifest: Manifest
    encoder: Encoder
    decoder: Decoder

    @classmethod
    def resident(
        cls,
        bundle: Bundle,
        device: str,
        *,
        capture: bool = True,
        session: onnxruntime.InferenceSession | None = None,
    ) -> "Graphs":
        """With all buffers in the device's memory.

        Args:
            bundle: what is opened.
            device: cuda or cpu.
            capture: whether steps are recorded as CUDA graphs.
            session: of the decoder graph, opened in another way; None: as it is served.
        """
        decoder = DeviceDecoder(bundle, device)
        decoder.session = session or decoder.session
        if not capture:
            decoder.cuda_graph_ids = itertools.count(_NO_CAPTURE, 0)
        return cls(bundle.manifest, DeviceEncoder(bundle, device), decoder)

    @classmethod
    def on_host(cls, bundle: Bundle) -> "Graphs":
        """On the CPU, as a server on a CPU has it."""
        return cls(bundle.manifest, EncoderSession(bundle, "cpu"), DecoderSession(bundle, "cpu"))

    def endless(self, max_target_tokens: int | None = None) -> "Graphs":
        """The same, with sentences that never end before their limit; and, perhaps, smaller caches."""
        changed = {"eos_id": _NO_ID, "max_target_tokens": max_target_tokens or self.manifest.max_target_tokens}
        return replace(self, manifest=self.manifest.model_copy(update=changed))


@dataclass(frozen=True)
class Steps:
    """The decode steps of a while.

    Attributes:
        count: how many.
        seconds: of all.
        rows: active slots of all, added up.
    """

    count: float
    seconds: float
    rows: float

    def __sub__(self, before: "Steps") -> "Steps":
        return Steps(self.count - before.count, self.seconds - before.seconds, self.rows - before.rows)


class Batch:
    """A decode batch."""

    def __init__(self, graphs: Graphs, slots: int, cache_bytes: int = 0) -> None:
        """Reserve slots.

        Args:
            graphs: that it runs.
            slots: how many sentences it decodes at a time.
            cache_bytes: of encoder memories that are kept, as a server keeps them.
        """
        self._metrics = Metrics()
        self._mailbox = Mailbox(sys.maxsize)
        metrics, manifest = self._metrics.of(graphs.manifest.name), graphs.manifest
        self._runner = Runner(manifest, graphs.encoder, graphs.decoder, slots)
        cache = EncoderMemoryCache(cache_bytes, metrics)
        self._batch = DecodeBatch(manifest, self._runner, cache, self._mailbox, metrics)
        self._eos_id = manifest.eos_id

    def decode(self, sentences: Sentences) -> list[list[int]]:
        """Target ids of each sentence."""
        return [segment.target_ids for segment in self._decode(sentences)]

    def count_tokens(self, sentences: Sentences) -> int:
        """Decode; gives the number of target tokens, the ends counted."""
        return sum(segment.decoded_tokens for segment in self._decode(sentences))

    def decode_watched(self, sentences: Sentences, watch: Watch) -> list[list[int]]:
        """Decode, while somebody looks at the logits of each segment after each step."""
        segments = _segments(sentences)
        decode(self._runner, self._eos_id, [segments], watch)
        return [segment.target_ids for segment in segments]

    @property
    def steps(self) -> Steps:
        """All so far."""
        total = self._metrics.total
        return Steps(
            total("decode_step_duration_seconds_count"),
            total("decode_step_duration_seconds_sum"),
            total("decode_batch_slots_sum"),
        )

    def _decode(self, sentences: Sentences) -> list[Segment]:
        segments = _segments(sentences)
        # The longest first: those that share a run of the encoder pad little, and the last to run are short.
        self._mailbox.submit(sorted(segments, key=lambda segment: len(segment.source_ids), reverse=True))
        while self._mailbox.unfinished:
            self._batch.step(wait=False)
        for segment in segments:
            if segment.error is not None:
                raise segment.error
        return segments


def _segments(sentences: Sentences) -> list[Segment]:
    return [Segment(ids, limit) for ids, limit in zip(sentences.sources, sentences.limits, strict=True)]


def random_sentences(manifest: Manifest, tokens: Sequence[int], limits: Sequence[int], seed: int = 0) -> Sentences:
    """Sources of random ids.

    Args:
        manifest: of the model.
        tokens: of each source, its end counted.
        limits: target tokens of each.
        seed: of the ids.
    """
    random = np.random.default_rng(seed)
    sources = [
        [*random.integers(_FIRST_ID, manifest.vocabulary_size, count - 1).tolist(), manifest.eos_id] for count in tokens
    ]
    return Sentences(sources, list(limits))


def equal_share(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> float:
    """The share of sentences whose tokens are all equal."""
    return sum(list(a) == list(b) for a, b in zip(one, other, strict=True)) / len(one)
