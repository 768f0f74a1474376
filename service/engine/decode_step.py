"""One step of a decode batch, between its scheduler and its runner."""

from service.decoding.scheduler import Scheduler, StepResult
from service.decoding.selection import Selection, select
from service.engine.runner import Runner


def run(runner: Runner, scheduler: Scheduler) -> Selection:
    """Compute what each segment may be continued with.

    Raises:
        Exception: the decoder fails whatever the slot: the engine is broken.
    """
    ids = runner.step()
    searched, count = scheduler.searched()
    best = runner.best(searched, count) if searched else {}
    return select(ids, scheduler.scored(), runner.logits_of, best)


def apply(runner: Runner, result: StepResult) -> None:
    """Do with the slots what the scheduler has decided."""
    runner.copy(result.copies)
    runner.fork(result.forks)
    runner.force(result.forced)
    runner.release(result.moves)
