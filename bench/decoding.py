"""The engine's own decode batch, driven by one thread without a server."""

import itertools
import sys
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from bench.sentences import Sentences
from dragoman.bundle import Bundle, Manifest
from plugins.gpu.device import DeviceDecoder, DeviceEncoder
from plugins.offline.engine import drive, raise_first
from service.decode import Decode
from service.engine.batch import DecodeBatch
from service.engine.encoder_cache import EncoderMemoryCache
from service.engine.graphs import open_graphs
from service.engine.runner import Runner, Watch
from service.queue.mailbox import Mailbox
from service.runtime.interfaces import Decoder, Encoder
from service.telemetry.metrics import Metrics

_NO_ID: Final = -1  # an end-of-sentence id that no row decodes
_NO_CAPTURE: Final = -1  # what onnxruntime takes for: record no CUDA graph


@dataclass(frozen=True)
class Graphs:
    manifest: Manifest
    encoder: Encoder
    decoder: Decoder

    @classmethod
    def resident(
        cls, bundle: Bundle, device: str, *, capture: bool = True, session: onnxruntime.InferenceSession | None = None
    ) -> "Graphs":
        """Open them with all buffers in the device's memory; the decoder's session may be opened in another way."""
        decoder = DeviceDecoder(bundle, device)
        decoder.session = session or decoder.session
        if not capture:
            decoder.cuda_graph_ids = itertools.count(_NO_CAPTURE, 0)
        return cls(bundle.manifest, DeviceEncoder(bundle, device), decoder)

    @classmethod
    def on_host(cls, bundle: Bundle) -> "Graphs":
        """Open them on the CPU, as a server on a CPU does."""
        return cls(bundle.manifest, *open_graphs(bundle, "cpu"))

    def endless(self, max_target_tokens: int | None = None) -> "Graphs":
        """Let no sentence end before its limit, perhaps with smaller caches."""
        changed = {"eos_id": _NO_ID, "max_target_tokens": max_target_tokens or self.manifest.max_target_tokens}
        return replace(self, manifest=self.manifest.model_copy(update=changed))


class Batch:
    def __init__(self, graphs: Graphs, slots: int, cache_bytes: int = 0) -> None:
        self._metrics = Metrics()
        self._mailbox = Mailbox(sys.maxsize)
        metrics, manifest = self._metrics.of(graphs.manifest.name), graphs.manifest
        self._runner = Runner(manifest, graphs.encoder, graphs.decoder, slots)
        cache = EncoderMemoryCache(cache_bytes, metrics)
        self._batch = DecodeBatch(manifest, self._runner, cache, self._mailbox, metrics)

    def decode(self, sentences: Sentences) -> list[list[int]]:
        return [decode.target_ids for decode in self._decode(sentences)]

    def count_tokens(self, sentences: Sentences) -> int:
        """Decode; gives the number of target tokens, the ends counted."""
        return sum(decode.decoded_tokens for decode in self._decode(sentences))

    def decode_watched(self, sentences: Sentences, watch: Watch) -> list[list[int]]:
        """Decode as `decode`, while `watch` sees the logits of each sentence after each step."""
        decodes = sentences.decodes()
        drive(self._runner, [decodes], watch)
        return [decode.target_ids for decode in decodes]

    @property
    def steps(self) -> NDArray[np.float64]:
        """[3] of the steps so far: their number, their seconds, and their active slots, added up."""
        names = ("decode_step_duration_seconds_count", "decode_step_duration_seconds_sum", "decode_batch_slots_sum")
        return np.array([self._metrics.total(name) for name in names])

    def _decode(self, sentences: Sentences) -> list[Decode]:
        decodes = sentences.decodes()
        # The longest first: those that share a run of the encoder pad little, and the last to run are short.
        self._mailbox.submit(sorted(decodes, key=lambda decode: len(decode.source_ids), reverse=True))
        while self._mailbox.unfinished:
            self._batch.step(wait=False)
        raise_first(decodes)
        return decodes
