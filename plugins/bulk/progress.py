"""How far a job is, on standard error: a bar where a terminal watches, else a line a minute."""

import sys
import time
from collections.abc import Iterable
from typing import Final

from tqdm import tqdm

from dragoman.commands.lines import complain
from plugins.bulk.worker import Done

_PAUSE_S: Final = 60.0


def watched(command: str, dones: Iterable[Done], rows: int, rows_before: int) -> Done:
    """Add up what becomes of chunks, and show it while they are worked on.

    Args:
        command: its name.
        dones: of the chunks.
        rows: of the whole job.
        rows_before: of the parts that were there already.

    Returns:
        All of them together.
    """
    total, shown_s = Done(0, 0), time.monotonic()
    is_terminal = sys.stderr.isatty()
    with tqdm(total=rows, initial=rows_before, unit="row", delay=2, disable=not is_terminal) as bar:
        for done in dones:
            total = Done(total.rows + done.rows, total.failed + done.failed)
            bar.update(done.rows)
            if not is_terminal and time.monotonic() - shown_s > _PAUSE_S:
                shown_s = time.monotonic()
                complain(command, f"{rows_before + total.rows} of {rows} rows")
    return total
