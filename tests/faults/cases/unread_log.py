"""A log in a pipe that nobody reads."""

import fcntl
import struct
import termios

from tests.faults.arena import Arena
from tests.faults.cases.failing_step import hold_answers, poison
from tests.faults.fault import Fault
from tests.waiting import until

_PIPE_BYTES = 4096  # of a pipe whose reader pauses
_LINE_BYTES = 100  # at least: so many lines are more than the pipe takes
_LINES_AFTER = 20
_LINES = _PIPE_BYTES // _LINE_BYTES + _LINES_AFTER


class UnreadLog(Fault):
    name = "unread-log"
    side = "server"
    promise = "A log that nobody reads any more delays no call."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        reader = server.reader
        reader.pause()
        try:
            failed = server.metric("failed_runs_total")
            poison(arena, _PIPE_BYTES // _LINE_BYTES)
            until(lambda: _unread_bytes(reader.pipe) > 0, "the pipe is written to", 20)
            arena.see("bytes that nobody reads", _unread_bytes(reader.pipe))
            poison(arena, _LINES_AFTER)
            arena.load.more(50, timeout_s=10)
            arena.see("lines that had to be logged", server.metric("failed_runs_total") - failed, _LINES)
        finally:
            reader.go_on()
        hold_answers(arena, arena.hit.figures().sent)


def _unread_bytes(pipe: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])
