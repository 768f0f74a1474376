"""Batches that another process makes ahead of the training, in an order that no timing changes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DataError
from model.batches import SpecialIds
from model.stream import Pool, Stream, StreamOptions


class StreamPlan(NamedTuple):
    """What a `Stream` is made of, to be sent to another process."""

    corpus: Path
    tokenizer: Path
    ids: SpecialIds
    options: StreamOptions


class Prefetched(NamedTuple):
    """A pool and where it belongs."""

    epoch: int
    number: int
    pool: Pool


@contextmanager
def prefetch(plan: StreamPlan, epoch: int, first: int) -> Iterator[Iterator[Prefetched]]:
    """Start the process, and end it with the block.

    It makes the next pool while the batches of one are used, and then waits until that is asked for.

    Args:
        plan: of the batches.
        epoch: to begin with.
        first: pool of that epoch to begin with.

    Yields:
        The pools without end, epoch after epoch; raises DataError where the process ends by itself.
    """
    context = get_context("spawn")  # the threads of torch do not survive a fork
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, plan, epoch, first), daemon=True)
    resource_tracker.ensure_running()  # else the start of the process begins with this, which unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is not for the process, which inherits
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sender.close()
    try:
        yield _received(receiver, process)
    finally:
        receiver.close()
        process.terminate()
        process.join()
        process.close()


def _received(receiver: Connection, process: SpawnProcess) -> Iterator[Prefetched]:
    while True:
        try:
            yield receiver.recv()
        except EOFError as error:
            process.join()
            raise DataError(f"the process that makes batches ended with code {process.exitcode}") from error


def pools(plan: StreamPlan, epoch: int, first: int) -> Iterator[Prefetched]:
    """Make the pools without end in this process; for the arguments see `prefetch`."""
    stream = Stream(*plan)
    for each in count(epoch):
        for number, pool in enumerate(stream.pools(each, first), first):
            yield Prefetched(each, number, pool)
        first = 0


def _send(sender: Connection, plan: StreamPlan, epoch: int, first: int) -> None:
    """Send the pools until nobody takes them."""
    with suppress(BrokenPipeError):  # the training has ended, however it did
        for pool in pools(plan, epoch, first):
            sender.send(pool)
