"""Cores for the servers and for the generator, which must not share them. Linux only."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def apart() -> Iterator[list[int]]:
    """Keep this thread, and those that it starts, to the last core, for the time of the block.

    Yields:
        The other cores, for the servers; where there is only one, that one.
    """
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    os.sched_setaffinity(0, cores[-1:])
    try:
        yield cores[:-1] or cores
    finally:
        os.sched_setaffinity(0, allowed)
