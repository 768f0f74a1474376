"""What every decode batch does, with a server and without: encode segments, give them slots, take a step."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from service.decode import Decode
from service.engine.micro_batches import micro_batches
from service.engine.runner import Runner
from service.engine.scheduler import Scheduler
from service.engine.step import Step
from service.runtime.interfaces import Memory, RunSize

# The memory of each source of a micro-batch; None where the encoder fails on it.
Encode = Callable[[Sequence[Sequence[int]]], Sequence[Memory | None]]
# Told of each active segment and its logits [vocabulary_size], a view, after every run of the decoder.
Watch = Callable[[Decode, NDArray[np.floating]], None]


def encode(decodes: Sequence[Decode], run: Encode, size: RunSize) -> Iterator[tuple[Decode, Memory]]:
    """Encode segments in micro-batches; gives them after each run, but for those that end because it fails on them."""
    for indices in micro_batches([len(decode.source_ids) for decode in decodes], size.tokens, size.cost):
        batch = [decodes[index] for index in indices]
        for decode, memory in zip(batch, run([each.source_ids for each in batch]), strict=True):
            if memory is None:
                decode.fail_alone(time.monotonic())
            else:
                yield decode, memory


def admit(runner: Runner, scheduler: Scheduler, decode: Decode, memory: Memory) -> None:
    """Give a segment the next slots; it ends with an error where that fails, and nothing else has changed then.

    Args:
        runner: that decodes it.
        scheduler: of the runner's slots.
        decode: takes no more slots than are free.
        memory: of its source.
    """
    try:
        runner.admit(len(scheduler.active), decode, memory)
        scheduler.admit(decode)
    except Exception as error:
        runner.note_failure(error)
        decode.fail_alone(time.monotonic())


def run(runner: Runner, scheduler: Scheduler, watch: Watch | None = None) -> Step:
    """Decode one token of every slot, and commit it; what is to be done with the slots is left.

    Raises:
        Exception: the decoder fails whatever the slot, and nothing has changed: the engine is broken.
    """
    tokens = runner.step(len(scheduler.active))
    if watch is not None:
        for slot, row in enumerate(scheduler.active):
            watch(row.decode, runner.table.logits_of(slot))
    asked = scheduler.ask(tokens, runner.table)
    best = runner.search(asked) if asked else {}
    return scheduler.commit(tokens, best, time.monotonic())
