"""Batches that other processes make ahead of the training, in an order that no timing changes."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, cycle
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.errors import DataError
from model.batches import SpecialIds
from model.stream import Pool, Stream, StreamOptions

_NICE: Final = 5  # the training comes first


class StreamPlan(NamedTuple):
    """What a `Stream` is made of, to be sent to other processes."""

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
def prefetch(plan: StreamPlan, epoch: int, first: int, processes: int = 1) -> Iterator[Iterator[Prefetched]]:
    """Start the processes, which make the pools in turn, and end them with the block.

    Each makes its next pool while the batches of one are used, and then waits until that is asked for.

    Args:
        plan: of the batches.
        epoch: to begin with.
        first: pool of that epoch to begin with.
        processes: that make batches.

    Yields:
        The pools without end, epoch after epoch; raises DataError where a process ends by itself.
    """
    context = get_context("spawn")  # the threads of torch do not survive a fork
    pipes = [context.Pipe(duplex=False) for _ in range(processes)]
    started = [
        context.Process(target=_send, args=(sender, plan, epoch, first, (turn, processes)), daemon=True)
        for turn, (_, sender) in enumerate(pipes)
    ]
    resource_tracker.ensure_running()  # else the start of a process begins with this, which unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is not for the processes, which inherit
    try:
        for process in started:
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    for _, sender in pipes:
        sender.close()
    try:
        yield _received([receiver for receiver, _ in pipes], started)
    finally:
        for (receiver, _), process in zip(pipes, started, strict=True):
            receiver.close()
            process.terminate()
            process.join()
            process.close()


def _received(receivers: Sequence[Connection], processes: Sequence[SpawnProcess]) -> Iterator[Prefetched]:
    for receiver, process in cycle(zip(receivers, processes, strict=True)):
        try:
            yield receiver.recv()
        except EOFError as error:
            process.join()
            raise DataError(f"the process that makes batches ended with code {process.exitcode}") from error


def pools(plan: StreamPlan, epoch: int, first: int, turn: tuple[int, int] = (0, 1)) -> Iterator[Prefetched]:
    """Make the pools without end in this process; for the first arguments see `prefetch`.

    Args:
        turn: which of the first n, and n, of which every n-th pool is made.
    """
    stream, (place, processes) = Stream(*plan), turn
    for each in count(epoch):
        last = stream.pool_count(each)
        for number in range(first + place, last, processes):
            yield Prefetched(each, number, stream.pool(each, number))
        place = (place - (last - first)) % processes
        first = 0


def _send(sender: Connection, plan: StreamPlan, epoch: int, first: int, turn: tuple[int, int]) -> None:
    """Send the pools of a turn until nobody takes them."""
    os.nice(_NICE)
    with suppress(BrokenPipeError):  # the training has ended, however it did
        for pool in pools(plan, epoch, first, turn):
            sender.send(pool)
