"""The engine of one bundle: its graphs, its threads, and what becomes of them."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import structlog

from dragoman.bundle import Bundle
from dragoman.errors import InternalError
from service.batch import DecodeBatch
from service.encoder_memory import EncoderMemoryCache
from service.graphs import DecoderSession, EncoderSession
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.request import Segment

_log = structlog.get_logger()


class Engine:
    """Threads that each drive a decode batch of their own, over one pair of sessions.

    A thread that ends ends the engine: whoever waits gets an InternalError, and `ended` says why.
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
    ) -> None:
        """Load the graphs and reserve the slots.

        Args:
            bundle: what to run.
            mailbox: where segments come from; of this engine alone.
            metrics: of the server.
            device: cpu or cuda.
            threads: decoding threads; 0: one a core.
            slots: segments that one thread decodes at a time.
            encoder_cache_bytes: of encoder memories that are kept for sources that come again.
            patience_s: how long `stop` waits for a thread, before it leaves it behind in its step; None: for ever.

        Raises:
            BundleError: a graph cannot be loaded on the device.
        """
        self._mailbox = mailbox
        self._patience_s = patience_s
        encoder, decoder = EncoderSession(bundle, device), DecoderSession(bundle, device)
        count = threads or len(os.sched_getaffinity(0))
        cache = EncoderMemoryCache(encoder_cache_bytes, metrics)
        self.batches = [
            DecodeBatch(bundle.manifest, encoder, decoder, mailbox, metrics, slots=slots, sharers=count, cache=cache)
            for _ in range(count)
        ]
        self._threads = [
            threading.Thread(target=self._run, args=[batch], name=f"engine-{index}", daemon=True)
            for index, batch in enumerate(self.batches)
        ]
        self._lock = threading.Lock()
        self._running = 0
        self._error: BaseException | None = None
        self.ended: Future[None] = Future()

    def start(self) -> None:
        """Start the threads."""
        self._running = len(self._threads)
        self.ended.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        for thread in self._threads:
            thread.start()

    def step_age_s(self) -> float:
        """Seconds since the oldest step that runs began; 0 where none runs."""
        return max(batch.step_age_s for batch in self.batches)

    def stop(self) -> None:
        """End the threads after their current step; what is unfinished fails."""
        self._mailbox.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(self._patience_s)
                if thread.is_alive():
                    _log.error("a thread does not end", thread=thread.name)

    def decode(self, segments: Sequence[Segment]) -> None:
        """Decode offline until all segments have ended; the engine must not have been started.

        Raises:
            InternalError: the graphs fail on a segment; the others have been decoded.
            Exception: whatever a step raises.
        """
        # The longest first: those that share a run of the encoder pad little, and the last to run are short.
        order = sorted(segments, key=lambda segment: len(segment.source_ids), reverse=True)
        with ThreadPoolExecutor(len(self.batches)) as pool:
            for portion in self._portions(order):
                self._mailbox.submit(portion)
                for finished in [pool.submit(self._exhaust, batch) for batch in self.batches]:
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
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._end(batch)

    def _end(self, batch: DecodeBatch) -> None:
        """One thread's end is that of all: answer every waiter, then, as the last one, let `ended` tell."""
        failure = InternalError("the engine has stopped")
        self._mailbox.stop()
        self._mailbox.fail(failure)
        batch.fail(failure)
        with self._lock:
            self._running -= 1
            last = not self._running
        if last and self._error is None:
            self.ended.set_result(None)
        elif last:
            self.ended.set_exception(self._error)
