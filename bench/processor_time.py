"""The processor time of another process, all of its threads, to the nanosecond. Linux only."""

import time
from typing import Final

_SCHEDULED: Final = 2  # of the clocks of a process, that of the scheduler


def processor_s(pid: int) -> float:
    """Return the seconds of a core that a process has had so far.

    Raises:
        OSError: there is no such process.
    """
    return time.clock_gettime(~pid << 3 | _SCHEDULED)  # clock_getcpuclockid(3)
