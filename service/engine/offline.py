"""An engine without a server: decodes sentences that are all there, in the same way as the server does."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dragoman.bundle import Bundle
from service.engine.dry_run import decode
from service.engine.graphs import open_graphs, open_runners
from service.engine.micro_batches import RUN_TOKENS
from service.engine.runner import Runner
from service.segment import Segment

# Segments that a thread takes at once.
_PORTION: Final = 32


class OfflineEngine:
    """Threads that each drive a runner of their own, over one pair of sessions, while `decode` runs."""

    def __init__(
        self, bundle: Bundle, *, device: str = "cpu", threads: int = 0, slots: int = 32, resident: bool = False
    ) -> None:
        """Load the graphs and reserve the slots.

        Args:
            bundle: what to run.
            device: cpu or cuda.
            threads: decoding threads; 0: one per core, or one on a GPU.
            slots: segments that one thread decodes at a time.
            resident: keep the buffers in the device's memory as on a GPU, where they always are, on a CPU too.

        Raises:
            BundleError: a graph cannot be loaded on the device, or there is no memory for the slots.
        """
        self._graphs = open_graphs(bundle, device, resident=resident)
        self._runners = open_runners(bundle, self._graphs, device=device, threads=threads, slots=slots)
        self._eos_id = bundle.manifest.eos_id

    def decode(self, segments: Sequence[Segment]) -> None:
        """Decode until all segments have ended.

        Raises:
            TextFailedError: a graph fails on a segment; the others have been decoded.
            Exception: a graph fails whatever the segment.
        """
        # The longest first: those that share a run of the encoder pad little, and the last to run are short.
        pending = deque(sorted(segments, key=lambda segment: len(segment.source_ids), reverse=True))
        own, *others = self._runners  # a GPU's recorded runs belong to the thread: the caller's is the same each time
        with ThreadPoolExecutor(len(self._runners)) as pool:
            started = [pool.submit(self._exhaust, runner, pending) for runner in others]
            try:
                self._exhaust(own, pending)
            finally:
                pending.clear()  # where it fails, the others need not go on
            for finished in started:
                finished.result()
        for segment in segments:
            if segment.error is not None:
                raise segment.error

    def close(self) -> None:
        """End the sessions; nothing is decoded after it."""
        for runner in self._runners:
            runner.close()
        for graph in self._graphs:
            graph.close()

    def _exhaust(self, runner: Runner, pending: deque[Segment]) -> None:
        decode(runner, self._eos_id, self._portions(pending))

    def _portions(self, pending: deque[Segment]) -> Iterator[list[Segment]]:
        """Take from the segments that are left, which other threads take from too, no more than a share of them."""
        while pending:
            count, tokens = min(_PORTION, -(-len(pending) // len(self._runners))), 0
            portion: list[Segment] = []
            while pending and len(portion) < count and tokens < RUN_TOKENS:
                try:
                    segment = pending.popleft()
                except IndexError:  # another thread was sooner
                    break
                portion.append(segment)
                tokens += len(segment.source_ids)
            yield portion
