"""Segments on which the encoder fails, in the company of others."""

from threading import Thread

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.truth import POISON

_CALLERS, _CALLS_EACH = 4, 5
_PATIENCE_S = 5.0
_REASONS = {"INTERNAL", "TEXT_FAILED"}  # both of the code INTERNAL


def poison(arena: Arena, count: int) -> None:
    """Ask for what the engine fails on, so often, one call after the other; not again once a call is lost."""
    with arena.server.connected() as stub:
        for number in range(count):
            if arena.hit.figures().lost:
                return
            way = calls.stream if number % 2 else calls.unary
            calls.call(way, stub, [POISON], arena.truth, arena.hit, patience_s=_PATIENCE_S)


def hold_answers(arena: Arena, count: int) -> None:
    """Hold that exactly so many calls were answered, all of them with the error of a segment that fails."""
    failed = arena.hit.figures().failed
    kept = failed.total() == count and set(failed) <= _REASONS
    arena.hold(kept, f"INTERNAL for each of {count} calls on which a graph fails: {dict(failed)}")


class FailingStep(Fault):
    name = "failing-step"
    side = "server"
    promise = "A segment on which a graph fails is answered INTERNAL; segments in the same run do not notice."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        failed, ended = server.metric("failed_runs_total"), server.metric("segments_total", reason="INTERNAL")
        callers = [Thread(target=poison, args=[arena, _CALLS_EACH]) for _ in range(_CALLERS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        count = _CALLERS * _CALLS_EACH
        arena.see("runs that failed", server.metric("failed_runs_total") - failed, count)
        arena.see("segments ended INTERNAL", server.metric("segments_total", reason="INTERNAL") - ended, count)
        hold_answers(arena, count)
