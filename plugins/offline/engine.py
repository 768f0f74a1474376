"""An engine without a server, its queue, metrics and cache: decodes what is all there, as the server does."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dragoman.bundle import Bundle
from service.decode import Decode, raise_first
from service.engine.graphs import Graphs, open_graphs, open_runners
from service.engine.runner import Runner, Watch, encode
from service.runtime.interfaces import Memory

# Slots for which a thread takes segments at once.
_PORTION: Final = 32


class OfflineEngine:
    """Threads that each drive a runner of their own, over one pair of sessions, while `decode` runs."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        device: str = "cpu",
        threads: int = 0,
        run_threads: int = 1,
        slots: int = 32,
        shortlist: bool = True,
        packed: bool = True,
        graphs: Graphs | None = None,
    ) -> None:
        """Load the graphs and reserve the slots.

        Args:
            bundle: what to run.
            device: cpu or cuda.
            threads: decoding threads; 0: one per core, or one on a GPU.
            run_threads: as for `service.runtime.sessions.open_session`.
            slots: segments that one thread decodes at a time.
            shortlist: as for `service.engine.graphs.open_graphs`.
            packed: as for `service.runtime.sessions.open_session`: without, less memory and more time.
            graphs: of the bundle, where they are open already; closed with the engine.

        Raises:
            BundleError: a graph cannot be loaded on the device, or there is no memory for the slots.
        """
        self._graphs = graphs or open_graphs(
            bundle, device, run_threads=run_threads, packed=packed, shortlist=shortlist
        )
        self._runners = open_runners(bundle, self._graphs, device=device, threads=threads, slots=slots)

    def decode(self, decodes: Sequence[Decode]) -> None:
        """Decode until all segments have ended.

        Raises:
            ValueError: a segment takes more slots than a thread has.
            TextFailedError: a graph fails on a segment; the others have been decoded.
            Exception: a graph fails whatever the segment.
        """
        for decode in decodes:
            if decode.slots > (slots := self._runners[0].slots):
                raise ValueError(f"a beam of {decode.slots} hypotheses needs as many slots, there are {slots}")
        # The longest first: those that share a run of the encoder pad little, and the last to run are short.
        pending = deque(sorted(decodes, key=lambda decode: len(decode.source_ids), reverse=True))
        own, *others = self._runners  # a GPU's recorded runs belong to the thread: the caller's is the same each time
        with ThreadPoolExecutor(len(self._runners)) as pool:
            started = [pool.submit(drive, runner, self._portions(pending)) for runner in others]
            try:
                drive(own, self._portions(pending))
            finally:
                pending.clear()  # where it fails, the others need not go on
            for finished in started:
                finished.result()
        raise_first(decodes)

    def close(self) -> None:
        """End the sessions; nothing is decoded after it."""
        for runner in self._runners:
            runner.close()
        for graph in self._graphs:
            graph.close()

    def _portions(self, pending: deque[Decode]) -> Iterator[list[Decode]]:
        """Take from the segments that are left, which other threads take from too, no more than a share of them."""
        most_tokens = self._runners[0].run_size.tokens
        while pending:
            count, slots, tokens = -(-len(pending) // len(self._runners)), 0, 0
            portion: list[Decode] = []
            while pending and len(portion) < count and slots < _PORTION and tokens < most_tokens:
                try:
                    decode = pending.popleft()
                except IndexError:  # another thread was sooner
                    break
                portion.append(decode)
                slots += decode.slots
                tokens += len(decode.source_ids)
            yield portion


def drive(runner: Runner, waves: Iterable[Sequence[Decode]], watch: Watch | None = None) -> None:
    """Decode segments; one on which a graph fails ends with an error.

    Args:
        runner: its slots are free; what was in them after a failure is forgotten.
        waves: of segments, none of which takes more slots than there are; the next wave is asked for before a step for
            which the one before it leaves slots free.
        watch: sees what ids are chosen from.

    Raises:
        Exception: a graph fails whatever the segment.
    """
    scheduler, coming = runner.scheduler, iter(waves)
    scheduler.clear()
    ready: deque[tuple[Decode, Memory]] = deque()
    more = True
    while more or ready or scheduler.active:
        if more and scheduler.free > sum(decode.slots for decode, _ in ready):
            wave = next(coming, None)
            more = wave is not None
            ready.extend(encode(wave or (), runner.encode, runner.run_size))
        while ready and scheduler.free >= ready[0][0].slots:
            runner.admit(*ready.popleft())
        if scheduler.active:
            runner.apply(runner.step(watch).edits)
