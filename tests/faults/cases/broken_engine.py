"""Graphs that fail on every segment."""

import time
from threading import Thread

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault

_CALLERS = 8
_AT_ONCE_S = 5.0
# Those that come later find a server that stops, or none; for CANCELLED see `calls`.
_EXPECTED = {"INTERNAL", "DRAINING", "CANCELLED", "SERVER_UNAVAILABLE"}


class BrokenEngine(Fault):
    name = "broken-engine"
    side = "server"
    promise = (
        "Where every run fails, all who wait are answered INTERNAL at once, and the process exits 1, so that a "
        "supervisor starts it again."
    )
    restarts = True
    failures = frozenset({"INTERNAL"})

    def inject(self, arena: Arena) -> None:
        server = arena.server
        broken = server.control / "broken"
        arena.load.more(1)
        before = arena.load.books.figures()
        with server.connected() as stub:
            calls.call(calls.unary, stub, arena.truth.sentences(arena.random, 1), arena.truth, arena.hit)

            def call() -> None:
                texts = [arena.random.choice(arena.truth.pages)]
                calls.call(calls.unary, stub, texts, arena.truth, arena.hit)

            broken.touch()
            began_s = time.monotonic()
            callers = [Thread(target=call) for _ in range(_CALLERS)]
            try:
                for caller in callers:
                    caller.start()
                for caller in callers:
                    caller.join()
                took_s = time.monotonic() - began_s
                code = server.exit_code(10)
            finally:
                broken.unlink()
        answered = (arena.hit.figures() + (arena.load.books.figures() - before)).failed["INTERNAL"]
        arena.see("calls answered INTERNAL", answered)
        arena.measure("s until all were answered", took_s)
        arena.hold(took_s < _AT_ONCE_S, f"answers within {_AT_ONCE_S:g} s: {took_s:.1f}")
        arena.hold(code == 1, f"exit code 1: {code}")
        failed = set(arena.hit.figures().failed)
        arena.hold(failed <= _EXPECTED, f"INTERNAL, or nobody there any more: {failed}")
        if code is None:
            server.kill()
        arena.over()
        server.start()
