"""The engine of one bundle: its graphs and threads, their start and their end."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from dragoman.bundle import Bundle
from dragoman.errors import InternalError
from service.engine.batch import DecodeBatch
from service.engine.encoder_cache import EncoderMemoryCache
from service.engine.graphs import Graphs, open_graphs, open_runners
from service.engine.runner import Runner
from service.engine.workers import Workers
from service.queue.mailbox import Mailbox
from service.telemetry.metrics import Metrics

_T = TypeVar("_T")


class Engine:
    """Threads that each drive a decode batch of their own, over the same sessions.

    Once one thread ends, the engine ends: all waiting callers get an InternalError, and `ended` has the reason.
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
        run_threads: int = 1,
        shortlist: bool = True,
        graphs: Graphs | None = None,
    ) -> None:
        """Load the graphs and reserve the slots.

        Args:
            mailbox: source of the segments; used by this engine alone.
            device: cpu or cuda.
            threads: decoding threads; 0: one per core, or one on a GPU.
            slots: segments that one thread decodes at a time.
            encoder_cache_bytes: limit of the encoder memories that are kept for repeated sources.
            patience_s: how long `stop` waits for a thread before it leaves the thread in its step; None: for ever.
            run_threads: as for `service.runtime.sessions.open_session`.
            shortlist: as for `service.engine.graphs.open_graphs`.
            graphs: graphs of the bundle, where they are open already; closed with the engine.

        Raises:
            BundleError: a graph cannot be loaded on the device, or there is no memory for the slots.
        """
        self._mailbox = mailbox
        self._patience_s = patience_s
        own_metrics = metrics.of(bundle.manifest.name)
        self._graphs = graphs or open_graphs(bundle, device, run_threads=run_threads, shortlist=shortlist)
        runners = open_runners(
            bundle,
            self._graphs,
            device=device,
            threads=threads,
            slots=slots,
            on_failure=lambda graph: own_metrics.failed_runs_total[graph].inc(),
        )
        self._cache = EncoderMemoryCache(encoder_cache_bytes, own_metrics)
        self.batches = [DecodeBatch(bundle.manifest, runner, self._cache, mailbox, own_metrics) for runner in runners]
        self._workers = Workers("engine", [partial(self._run, batch) for batch in self.batches])
        self.ended = self._workers.ended
        self._given_back = False

    def on_each_thread(self, work: Callable[[Runner], _T]) -> list[_T]:
        """Have each thread call `work` with its runner before `start`, all at the same time; gives the results.

        Raises:
            Exception: an error of the work, once all threads have done it.
        """
        return self._workers.on_each_thread([partial(work, batch.runner) for batch in self.batches])

    def start(self) -> None:
        """Have the threads take segments."""
        self._workers.start()

    def step_age_s(self) -> float:
        """Measure the age of the oldest running step, in seconds; 0 where none runs."""
        return max(batch.step_age_s for batch in self.batches)

    def stop(self) -> None:
        """End the threads after their current step, and free the slots and the cache; unfinished segments fail."""
        self._mailbox.stop()
        ended = self._workers.join(self._patience_s)
        if not self._given_back:
            self._given_back = True
            self._cache.clear()
            for batch in self.batches:
                batch.forget_metrics()
            if ended:  # a thread that has not ended still needs the graphs
                for batch in self.batches:
                    batch.runner.close()
                for graph in self._graphs:
                    graph.close()

    def _run(self, batch: DecodeBatch) -> None:
        try:
            while batch.step(wait=True):
                pass
        finally:
            # The end of one thread ends the engine: every waiting caller gets its error before `ended` is set.
            failure = InternalError("the engine has stopped")
            self._mailbox.stop()
            self._mailbox.fail(failure)
            batch.fail(failure)
