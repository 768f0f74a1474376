"""The engine of one bundle: its graphs, its threads, and what becomes of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, InternalError
from service import cores
from service.engine.batch import DecodeBatch
from service.engine.encoder_cache import EncoderMemoryCache
from service.engine.workers import Workers
from service.queue.mailbox import Mailbox
from service.runtime.device import DeviceDecoder, DeviceEncoder
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.interfaces import Decoder, Encoder
from service.segment import Segment
from service.telemetry.metrics import Metrics

_T = TypeVar("_T")


class Engine:
    """Threads that each drive a decode batch of their own, over one pair of sessions.

    A thread that ends ends the engine: all waiting callers get an InternalError, and `ended` says why.
    """

    def __init__(
        self,
        bundle: Bundle,
        mailbox: Mailbox,
        metrics: Metrics,
        *,
        device: str,
        threads: int,
        slots: int,
        encoder_cache_bytes: int = 0,
        patience_s: float | None = None,
        resident: bool = False,
    ) -> None:
        """Load the graphs and reserve the slots.

        Args:
            bundle: what to run.
            mailbox: where segments come from; of this engine alone.
            metrics: of the server.
            device: cpu or cuda.
            threads: decoding threads; 0: one per core, or one on a GPU.
            slots: segments that one thread decodes at a time.
            encoder_cache_bytes: of encoder memories that are kept for sources that come again.
            patience_s: how long `stop` waits for a thread, before it leaves it behind in its step; None: for ever.
            resident: keep the buffers in the device's memory as on a GPU, where they always are, on a CPU too.

        Raises:
            BundleError: a graph cannot be loaded on the device, or there is no memory for the slots.
        """
        self._mailbox = mailbox
        self._patience_s = patience_s
        encoder, decoder = self._graphs = _open(bundle, device, resident=resident or device != "cpu")
        count = threads or (cores.available() if device == "cpu" else 1)
        own_metrics = metrics.of(bundle.manifest.name)
        cache = self._cache = EncoderMemoryCache(encoder_cache_bytes, own_metrics)
        try:
            self.batches = [
                DecodeBatch(bundle.manifest, encoder, decoder, mailbox, own_metrics, slots=slots, cache=cache)
                for _ in range(count)
            ]
        except MemoryError as error:
            raise BundleError(
                f"model {bundle.manifest.name}: no memory for {slots} slots on each of {count} threads, for sources of "
                f"{bundle.manifest.max_source_tokens} and translations of {bundle.manifest.max_target_tokens} tokens"
            ) from error
        self._workers = Workers("engine", [partial(self._run, batch) for batch in self.batches])
        self.ended = self._workers.ended
        self._given_back = False

    def on_each_thread(self, work: Callable[[DecodeBatch], _T]) -> list[_T]:
        """Have each thread do something with its batch before `start`, all at a time; gives what they return.

        Raises:
            Exception: what the work raises, once all have ended.
        """
        return self._workers.on_each_thread([partial(work, batch) for batch in self.batches])

    def start(self) -> None:
        """Have the threads take segments."""
        self._workers.start()

    def step_age_s(self) -> float:
        """Seconds since the oldest step that runs began; 0 where none runs."""
        return max(batch.step_age_s for batch in self.batches)

    def stop(self) -> None:
        """End the threads after their current step, and give back the slots and the cache; what is unfinished fails."""
        self._mailbox.stop()
        ended = self._workers.join(self._patience_s)
        if not self._given_back:
            self._given_back = True
            self._cache.clear()
            for batch in self.batches:
                batch.give_back()
            if ended:  # a thread that was left behind needs them
                self._close()

    def _close(self) -> None:
        for batch in self.batches:
            batch.close()
        for graph in self._graphs:
            graph.close()

    def decode(self, segments: Sequence[Segment]) -> None:
        """Decode offline until all segments have ended; the engine must not have been started.

        Raises:
            InternalError: the graphs fail on a segment; the others have been decoded.
            Exception: whatever a step raises.
        """
        # The longest first: those that share a run of the encoder pad little, and the last to run are short.
        order = sorted(segments, key=lambda segment: len(segment.source_ids), reverse=True)
        own, *others = self.batches  # a GPU's recorded runs belong to the thread: the caller's is the same each time
        with ThreadPoolExecutor(len(self.batches)) as pool:
            for portion in self._portions(order):
                self._mailbox.submit(portion)
                started = [pool.submit(self._exhaust, batch) for batch in others]
                self._exhaust(own)
                for finished in started:
                    finished.result()
        for segment in segments:
            if segment.error is not None:
                raise segment.error

    def _portions(self, segments: Sequence[Segment]) -> list[list[Segment]]:
        """Parts that the mailbox takes."""
        portions: list[list[Segment]] = []
        tokens = self._mailbox.limit_source_tokens
        for segment in segments:
            tokens += len(segment.source_ids)
            if tokens > self._mailbox.limit_source_tokens:
                portions.append([])
                tokens = len(segment.source_ids)
            portions[-1].append(segment)
        return portions

    def _exhaust(self, batch: DecodeBatch) -> None:
        while batch.busy or self._mailbox.queued_segments:
            batch.step(wait=False)

    def _run(self, batch: DecodeBatch) -> None:
        try:
            while batch.step(wait=True):
                pass
        finally:
            # One thread's end is that of all: every waiter is answered before `ended` tells.
            failure = InternalError("the engine has stopped")
            self._mailbox.stop()
            self._mailbox.fail(failure)
            batch.fail(failure)


def _open(bundle: Bundle, device: str, *, resident: bool) -> tuple[Encoder, Decoder]:
    if resident:
        return DeviceEncoder(bundle, device), DeviceDecoder(bundle, device)
    return EncoderSession(bundle, device), DecoderSession(bundle, device)
