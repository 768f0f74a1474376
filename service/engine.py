"""The engine of one bundle: its graphs, its threads, and what becomes of them."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from dragoman.bundle import Bundle
from dragoman.errors import InternalError
from service.batch import DecodeBatch
from service.graphs import DecoderSession, EncoderSession
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.request import Segment

# Source lengths of the warm-up, in tokens: a short sentence, a usual one, a long one.
WARM_UP_LENGTHS = (3, 10, 30)
WARM_UP_TOKENS = 4


class Engine:
    """Threads that each drive a decode batch of their own, over one pair of sessions.

    A thread that ends ends the engine: whoever waits gets an InternalError, and `ended` says why.
    """

    def __init__(
        self, bundle: Bundle, mailbox: Mailbox, metrics: Metrics, *, device: str, threads: int, slots: int
    ) -> None:
        """Load the graphs and reserve the slots.

        Args:
            bundle: what to run.
            mailbox: where segments come from; of this engine alone.
            metrics: of the server.
            device: cpu or cuda.
            threads: decoding threads; 0: one a core.
            slots: segments that one thread decodes at a time.

        Raises:
            BundleError: a graph cannot be loaded on the device.
        """
        self._mailbox = mailbox
        self._manifest = bundle.manifest
        encoder, decoder = EncoderSession(bundle, device), DecoderSession(bundle, device)
        count = threads or len(os.sched_getaffinity(0))
        self.batches = [
            DecodeBatch(bundle.manifest, encoder, decoder, mailbox, metrics, slots=slots, sharers=count)
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

    def warm_up(self) -> None:
        """Decode a few segments on every batch, so that the first caller does not pay for first times.

        Raises:
            Exception: whatever the runtime raises; the bundle does not run.
        """
        tokens = min(WARM_UP_TOKENS, self._manifest.max_target_tokens)
        lengths = [min(length, self._manifest.max_source_tokens) for length in WARM_UP_LENGTHS]
        for batch in self.batches:
            self._mailbox.submit([Segment([self._manifest.eos_id] * length, tokens) for length in lengths])
            while self._mailbox.unfinished:
                batch.step(wait=False)

    def start(self) -> None:
        """Start the threads."""
        self._running = len(self._threads)
        self.ended.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads after their current step; what is unfinished fails."""
        self._mailbox.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def decode(self, segments: Sequence[Segment]) -> None:
        """Decode offline until all segments have ended; the engine must not have been started.

        Raises:
            Exception: whatever a step raises.
        """
        with ThreadPoolExecutor(len(self.batches)) as pool:
            for portion in self._portions(segments):
                self._mailbox.submit(portion)
                for finished in [pool.submit(self._exhaust, batch) for batch in self.batches]:
                    finished.result()

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
        while batch.active or self._mailbox.queued_segments:
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
