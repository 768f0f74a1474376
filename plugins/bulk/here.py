"""Runs the chunks of a job in this process, one after another, or several at a time if servers do the work."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from plugins.bulk.plan import Chunk
from plugins.bulk.worker import Done


def run(chunks: Sequence[Chunk], work: Callable[[Chunk], Done], *, at_a_time: int) -> Iterator[Done]:
    """Process chunks.

    Args:
        work: makes the part of a chunk; called from several threads if `at_a_time` is more than 1.
        at_a_time: the number of chunks processed at a time.

    Yields:
        The result of each chunk, as soon as it is done.

    Raises:
        DragomanError: as `work`; no further chunk is begun.
        OSError: as `work`; no further chunk is begun.
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
