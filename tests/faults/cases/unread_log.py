"""A log in a pipe that nobody reads."""

import fcntl
import struct
import termios

from tests.faults.arena import Arena
from tests.faults.cases.failing_step import hold_answers, poison
from tests.faults.fault import Fault
from tests.faults.server import until

_PIPE_BYTES = 4096
_LINES_A_LOOK = 4
_LINES_AFTER = 20


class UnreadLog(Fault):
    name = "unread-log"
    side = "server"
    promise = "A log that nobody reads any more delays no call."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        pump = server.pump
        fcntl.fcntl(pump.pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        pump.pause()
        try:
            failed = server.metric("failed_runs_total")

            def full() -> bool:
                """Whether lines that must be logged do not arrive in the pipe any more."""
                before = _unread_bytes(pump.pipe)
                poison(arena, _LINES_A_LOOK)
                return _unread_bytes(pump.pipe) == before > 0

            until(full, "the pipe is full", 20)
            arena.see("bytes that nobody reads", _unread_bytes(pump.pipe))
            poison(arena, _LINES_AFTER)
            arena.load.more(50, timeout_s=10)
            arena.see("lines that had to be logged", server.metric("failed_runs_total") - failed, _LINES_AFTER)
        finally:
            pump.go_on()
        hold_answers(arena, arena.hit.figures().sent)


def _unread_bytes(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])
