"""A static batcher in the place of the engine: collects segments up to a number or for a time, runs, answers.

This is what inference servers do around a library that translates closed batches: while a batch runs, nothing joins
it and nothing leaves it. Behind the same mailbox as the engine, so that everything else of the server is the same.
"""

import threading
import time
from collections.abc import Callable, Sequence

from bench.sentences import Sentences
from dragoman.errors import InternalError
from service.decode import Decode, DecodeStatus, FinishReason
from service.engine.workers import Workers
from service.queue.mailbox import Mailbox

# How often a batch that is not full looks for more; short beside any batch.
_POLL_S = 0.0005

# Gives the target ids of each.
Translate = Callable[[Sentences], list[list[int]]]


class StaticBatcher:
    """Threads that each run one batch at a time; one after another collects the next.

    A thread that ends ends all: each waiting caller gets an InternalError, and `ended` says why.
    """

    def __init__(self, mailbox: Mailbox, translate: Translate, *, size: int, wait_s: float, workers: int) -> None:
        """Make threads, and do not start them yet."""
        self._mailbox = mailbox
        self._worker = mailbox.register_worker()
        self._translate = translate  # decodes one batch; called by several threads at a time
        self._size = size
        self._wait_s = wait_s  # of the first segment of a batch for others; 0: takes those that wait with it
        self._collecting = threading.Lock()
        self._workers = Workers("batcher", [self._run] * workers)
        self.ended = self._workers.ended

    def start(self) -> None:
        self._workers.start()

    def step_age_s(self) -> float:
        return 0.0  # nobody asks whether it stalls

    def stop(self) -> None:
        """End the threads after their current batch; what is unfinished fails."""
        self._mailbox.stop()
        self._workers.join()

    def _run(self) -> None:
        batch: list[Decode] = []
        try:
            while (collected := self._collect()) is not None:
                batch = collected
                self._decode(batch)
        finally:
            failure = InternalError("the batcher has stopped")
            self._mailbox.stop()
            self._mailbox.fail(failure)
            left = [decode for decode in batch if not decode.finished]
            for decode in left:
                decode.fail(failure, time.monotonic())
            self._mailbox.deliver(left)

    def _collect(self) -> list[Decode] | None:
        """Collect the next batch; None once the batcher is to stop. One thread at a time collects: batches fill up."""
        with self._collecting:
            batch = self._mailbox.take(self._worker, self._size, wait=True)
            if not batch:
                return batch
            first_s = batch[0].submitted_s or time.monotonic()
            while len(batch) < self._size and (left_s := first_s + self._wait_s - time.monotonic()) > 0:
                time.sleep(min(left_s, _POLL_S))
                batch += self._mailbox.take(self._worker, self._size - len(batch), wait=False) or []
            return batch

    def _decode(self, batch: Sequence[Decode]) -> None:
        """Run a batch without cancelled and expired segments, and answer: a closed batch cannot be left earlier."""
        start_s = time.monotonic()
        alive = [decode for decode in batch if not decode.end_early(start_s)]
        for decode in alive:
            decode.status = DecodeStatus.DECODING
            decode.admitted_s = start_s
        limits = [decode.max_target_tokens for decode in alive]
        targets = self._translate(Sentences([decode.source_ids for decode in alive], limits)) if alive else []
        for decode, ids, limit in zip(alive, targets, limits, strict=True):
            decode.first_token_s = now_s = time.monotonic()
            if not decode.end_early(now_s):
                decode.target_ids.extend(ids[:limit])
                decode.finish(FinishReason.LENGTH if len(ids) >= limit else FinishReason.EOS, now_s)
        self._mailbox.deliver(batch)
