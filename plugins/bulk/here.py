"""The chunks of a job one after the other in this process, or some at a time where servers do the work."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from plugins.bulk.plan import Chunk
from plugins.bulk.worker import Done


def run(chunks: Sequence[Chunk], work: Callable[[Chunk], Done], *, at_a_time: int) -> Iterator[Done]:
    """Work on chunks.

    Args:
        chunks: all of them.
        work: makes the part of one; from several threads where some are worked on at a time.
        at_a_time: how many are.

    Yields:
        What became of each, as soon as it is done.

    Raises:
        DragomanError: as `work`; no other chunk is begun.
        OSError: likewise.
    """
    if at_a_time == 1:
        yield from map(work, chunks)
        return
    with ThreadPoolExecutor(at_a_time) as pool:
        try:
            for done in as_completed([pool.submit(work, chunk) for chunk in chunks]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
