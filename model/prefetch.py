"""Batches that other processes make ahead of the training; their order does not depend on timing."""

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

_NICE: Final = 5  # the training has a higher priority


class StreamPlan(NamedTuple):
    """The arguments of a `Stream`, to send to other processes."""

    corpus: Path
    tokenizer: Path
    ids: SpecialIds
    options: StreamOptions


class Prefetched(NamedTuple):
    """A pool, with its epoch and number."""

    epoch: int
    number: int
    pool: Pool


@contextmanager
def prefetch(plan: StreamPlan, epoch: int, first: int, processes: int = 1) -> Iterator[Iterator[Prefetched]]:
    """Start processes that make the pools in turn, and end the processes with the block.

    Each process makes its next pool while the batches of its last one are used, then waits until the pool is requested.

    Args:
        plan: the arguments of the stream.
        epoch: the first epoch.
        first: the first pool of that epoch.
        processes: the number of processes.

    Yields:
        The pools without end, epoch after epoch; raises DataError if a process ends by itself.
    """
    context = get_context("spawn")  # torch's threads do not survive a fork
    pipes = [context.Pipe(duplex=False) for _ in range(processes)]
    started = [
        context.Process(target=_send, args=(sender, plan, epoch, first, (turn, processes)), daemon=True)
        for turn, (_, sender) in enumerate(pipes)
    ]
    resource_tracker.ensure_running()  # else the first process start would do it, and unblock signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is not for these processes
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
        turn: (i, n): of every n pools, make pool i.
    """
    stream, (place, processes) = Stream(*plan), turn
    for each in count(epoch):
        last = stream.pool_count(each)
        for number in range(first + place, last, processes):
            yield Prefetched(each, number, stream.pool(each, number))
        place = (place - (last - first)) % processes
        first = 0


def _send(sender: Connection, plan: StreamPlan, epoch: int, first: int, turn: tuple[int, int]) -> None:
    """Send the pools of a turn until the receiver is closed."""
    os.nice(_NICE)
    with suppress(BrokenPipeError):  # the training has ended in any way
        for pool in pools(plan, epoch, first, turn):
            sender.send(pool)
