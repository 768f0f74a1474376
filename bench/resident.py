"""How much memory a process holds. Linux only."""

import os
from pathlib import Path


def resident_mib(pid: int) -> float:
    """Mebibytes of a process that are resident now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
