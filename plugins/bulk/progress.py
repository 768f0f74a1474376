"""The progress of a job, on standard error: a bar on a terminal, otherwise a line every minute."""

import sys
import time
from collections.abc import Iterable
from typing import Final

from tqdm import tqdm

from dragoman.commands.lines import complain
from plugins.bulk.worker import Done

_PAUSE_S: Final = 60.0


def watched(command: str, dones: Iterable[Done], rows: int, rows_before: int) -> Done:
    """Add up the results of chunks, and show the progress.

    Args:
        rows: the rows of the whole job.
        rows_before: the rows of the parts that already existed.
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
