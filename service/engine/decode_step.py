"""One step of a decode batch, between its scheduler and its runner."""

import time

from service.decode import Decode
from service.engine.runner import Runner
from service.engine.scheduler import Scheduler, StepResult
from service.engine.selection import Selection
from service.runtime.interfaces import Memory


def admit(runner: Runner, scheduler: Scheduler, decode: Decode, memory: Memory) -> None:
    """Give a segment the next slots; it ends with an error where that fails, and nothing else has changed then.

    Args:
        runner: that decodes it.
        scheduler: of the runner's slots.
        decode: takes no more slots than are free.
        memory: of its source.
    """
    slot = runner.active
    try:
        given_ids = decode.given_ids if runner.has_shortlist else ()
        runner.admit(memory, decode.start_ids[0] if decode.start_ids else None, decode.source_ids, given_ids)
        scheduler.admit(decode)
    except Exception as error:
        runner.note_failure(error)
        runner.release([(slot, slot)] * (runner.active - slot))
        decode.fail_alone(time.monotonic())


def run(runner: Runner, scheduler: Scheduler) -> Selection:
    """Compute what each segment may be continued with.

    Raises:
        Exception: the decoder fails whatever the slot: the engine is broken.
    """
    tokens = runner.step()
    if scheduler.is_plain:
        return Selection(tokens)
    chosen = scheduler.choose(tokens, runner.logits_of)
    for slot, token in chosen.items():
        tokens[slot] = token
    asked, count = scheduler.asked(tokens)
    best = runner.search(asked, count) if asked else {}
    return Selection(tokens, best, {slot: runner.attention_of(slot) for slot in scheduler.aligned()}, chosen)


def apply(runner: Runner, result: StepResult) -> None:
    """Do with the slots what the scheduler has decided."""
    if result.copies:
        runner.copy(result.copies)
    if result.forks:
        runner.fork(result.forks)
    if result.forced:
        runner.force(result.forced)
    if result.moves:
        runner.release(result.moves)
