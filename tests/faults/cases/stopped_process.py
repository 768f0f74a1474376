"""A process that stands still for five seconds: SIGSTOP, then SIGCONT."""

import signal
import time
from pathlib import Path

from tests.faults.arena import Arena
from tests.faults.fault import Fault

_STOPPED_S = 5.0


class StoppedProcess(Fault):
    name = "stopped-process"
    side = "server"
    promise = "A process that stood still goes on where it was: every call is answered, and health is SERVING."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        server.signal(signal.SIGSTOP)
        try:
            time.sleep(0.5)  # answers that were on their way
            state = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0]
            arena.see("processes stopped", state == "T")
            answered = arena.load.books.figures().ok
            time.sleep(_STOPPED_S)
            arena.hold(arena.load.books.figures().ok == answered, "nothing is answered by a process that stands still")
            arena.see("calls that had to wait", arena.load.books.figures().open)
        finally:
            server.signal(signal.SIGCONT)
            arena.over()
