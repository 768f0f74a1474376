"""A log on a disk that is full."""

import errno
import os
from pathlib import Path

from tests.faults.arena import Arena
from tests.faults.cases.failing_step import hold_answers, poison
from tests.faults.fault import Fault

_FULL = Path("/dev/full")
_LINES = 20


class FullLogDisk(Fault):
    name = "full-log-disk"
    side = "server"
    promise = "A log that cannot be written fails no call, and the server still stops with exit code 0."
    restarts = True

    @property
    def needs(self) -> str:
        return "" if _FULL.exists() else f"there is no {_FULL}"

    def inject(self, arena: Arena) -> None:
        server = arena.server
        server.stop()
        server.start(_FULL)
        arena.see("logs to a full disk", os.readlink(f"/proc/{server.pid}/fd/2") == str(_FULL))
        arena.see("writes there that fail", _write(_FULL) == errno.ENOSPC)
        poison(arena, _LINES)
        arena.load.more(50)
        arena.see("lines lost, and counted", server.metric("log_lines_dropped_total"), _LINES)
        hold_answers(arena, _LINES)
        code = server.stop()
        arena.hold(code == 0, f"exit code 0: {code}")
        arena.over()
        server.start()


def _write(path: Path) -> int:
    try:
        path.write_text("x")
    except OSError as error:
        return error.errno or 0
    return 0
