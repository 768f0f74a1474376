"""Cores for the servers and for the generator, which must not share them. Linux only."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Cores(NamedTuple):
    """Numbers of cores, in ascending order.

    Attributes:
        server: all but the last that this process may use.
        generator: the last.
    """

    server: tuple[int, ...]
    generator: tuple[int, ...]


@contextmanager
def apart() -> Iterator[Cores]:
    """Keep this thread, and those that it starts, to the last core, for the time of the block.

    Yields:
        The cores; where there is only one, both have it.
    """
    allowed = os.sched_getaffinity(0)
    cores = tuple(sorted(allowed))
    divided = Cores(cores[:-1] or cores, cores[-1:])
    os.sched_setaffinity(0, divided.generator)
    try:
        yield divided
    finally:
        os.sched_setaffinity(0, allowed)
