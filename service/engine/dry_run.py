"""Segments decoded by a runner to their ends, without a server: no queue, no metrics, no cache."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from service.decode import Decode
from service.engine import decode_step
from service.engine.micro_batches import micro_batches
from service.engine.runner import Runner
from service.engine.scheduler import Scheduler
from service.runtime.interfaces import Memory

# Told of each active segment and its logits [vocabulary_size], a view, after every run of the decoder.
Watch = Callable[[Decode, NDArray[np.floating]], None]


def drive(runner: Runner, eos_id: int, waves: Iterable[Sequence[Decode]], watch: Watch | None = None) -> None:
    """Decode segments; one on which a graph fails ends with an error.

    Args:
        runner: none of whose slots is active.
        eos_id: the end-of-sentence token.
        waves: of segments, none of which takes more slots than there are; the next wave is asked for before a step for
            which the one before it leaves slots free.
        watch: sees what ids are chosen from.

    Raises:
        Exception: a graph fails whatever the segment.
    """
    scheduler, coming = Scheduler(runner.slots, eos_id, runner.note_failure), iter(waves)
    ready: deque[tuple[Decode, Memory]] = deque()
    more = True
    while more or ready or scheduler.active:
        if more and scheduler.free > sum(decode.slots for decode, _ in ready):
            wave = next(coming, None)
            more = wave is not None
            ready.extend(_encoded(runner, wave or ()))
        while ready and scheduler.free >= ready[0][0].slots:
            decode, memory = ready.popleft()
            decode_step.admit(runner, scheduler, decode, memory)
        if scheduler.active:
            _step(runner, scheduler, watch)


def _step(runner: Runner, scheduler: Scheduler, watch: Watch | None) -> None:
    selection = decode_step.run(runner, scheduler)
    if watch is not None:
        for slot, decode in enumerate(scheduler.active):
            watch(decode, runner.logits_of(slot))
    result = scheduler.commit(selection, time.monotonic())
    decode_step.apply(runner, result)


def _encoded(runner: Runner, wave: Sequence[Decode]) -> list[tuple[Decode, Memory]]:
    """Encode segments, as many together as a server would; those on which the encoder fails end."""
    encoded = []
    for run in micro_batches([len(decode.source_ids) for decode in wave]):
        memories = runner.encode([wave[index].source_ids for index in run])
        for index, memory in zip(run, memories, strict=True):
            if memory is None:
                wave[index].fail_alone(time.monotonic())
            else:
                encoded.append((wave[index], memory))
    return encoded
