"""An engine without server, queue, metrics or cache: decodes given segments as the server does."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from dragoman.bundle import Bundle
from service.decode import Decode
from service.engine.graphs import Graphs, open_graphs, open_runners
from service.engine.runner import Runner, Watch, encode
from service.runtime.interfaces import Memory

# The number of slots for which a thread takes segments at a time.
_PORTION: Final = 32


class OfflineEngine:
    """Threads that each drive their own runner, over shared sessions, while `decode` runs."""

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
            device: cpu or cuda.
            threads: decoding threads; 0: one per core, or one on a GPU.
            run_threads: as for `service.runtime.sessions.open_session`.
            slots: the number of segments that one thread decodes at a time.
            shortlist: as for `service.engine.graphs.open_graphs`.
            packed: as for `service.runtime.sessions.open_session`; False: less memory and more time.
            graphs: open graphs of the bundle; they are closed with the engine. None: the graphs are opened here.

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
            ValueError: a segment needs more slots than a thread has.
            TextFailedError: a graph fails on a segment; the other segments have been decoded.
            Exception: a graph fails independently of the segment.
        """
        for decode in decodes:
            if decode.slots > (slots := self._runners[0].slots):
                raise ValueError(f"a beam of {decode.slots} hypotheses needs as many slots, there are {slots}")
        # Longest first: segments in one encoder run need little padding, and the last segments to run are short.
        pending = deque(sorted(decodes, key=lambda decode: len(decode.source_ids), reverse=True))
        own, *others = self._runners  # a GPU's recordings belong to a thread: the caller's runner is always the same
        with ThreadPoolExecutor(len(self._runners)) as pool:
            started = [pool.submit(drive, runner, self._portions(pending)) for runner in others]
            try:
                drive(own, self._portions(pending))
            finally:
                pending.clear()  # after a failure, the other threads need not continue
            for finished in started:
                finished.result()
        raise_first(decodes)

    def close(self) -> None:
        """Close the sessions; nothing can be decoded afterwards."""
        for runner in self._runners:
            runner.close()
        for graph in self._graphs:
            graph.close()

    def _portions(self, pending: deque[Decode]) -> Iterator[list[Decode]]:
        """Take segments from the shared queue of all threads, at most an equal share of the rest at a time."""
        most_tokens = self._runners[0].run_size.tokens
        while pending:
            count, slots, tokens = -(-len(pending) // len(self._runners)), 0, 0
            portion: list[Decode] = []
            while pending and len(portion) < count and slots < _PORTION and tokens < most_tokens:
                try:
                    decode = pending.popleft()
                except IndexError:  # another thread took the last segment
                    break
                portion.append(decode)
                slots += decode.slots
                tokens += len(decode.source_ids)
            yield portion


def drive(runner: Runner, waves: Iterable[Sequence[Decode]], watch: Watch | None = None) -> None:
    """Decode segments; a segment on which a graph fails ends with an error.

    Args:
        runner: its slots are free; the remains of a failed run in them are discarded.
        waves: groups of segments, none of which needs more slots than there are; the next wave is requested before a
            step for which the previous one leaves slots free.
        watch: gets the logits from which ids are chosen.

    Raises:
        Exception: a graph fails independently of the segment.
    """
    scheduler, coming = runner.scheduler, iter(waves)
    scheduler.clear()
    ready: deque[tuple[Decode, Memory]] = deque()
    more = True
    while more or ready or scheduler.active:
        if more and scheduler.free > sum(decode.slots for decode, _ in ready):
            wave = next(coming, None)
            more = wave is not None
            encoded = encode(wave or (), runner.encode, runner.run_size)
            ready.extend((decode, memory) for decode, memory in encoded if memory is not None)
        while ready and scheduler.free >= ready[0][0].slots:
            runner.admit(*ready.popleft())
        if scheduler.active:
            runner.apply(runner.step(watch).edits)


def raise_first(decodes: Iterable[Decode]) -> None:
    """Raise the first error of some decodes that have ended, if there is one.

    Raises:
        DragomanError: the error of a decode.
    """
    for decode in decodes:
        if decode.error is not None:
            raise decode.error
