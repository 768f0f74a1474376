"""What a measurement tells on stderr while it runs."""

import sys
import time
from collections.abc import Callable

Log = Callable[[str], None]


def log_with_time() -> Log:
    """Return a function that prints a line, after the seconds since this call."""
    start_s = time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - start_s:6.1f} s  {text}", file=sys.stderr, flush=True)

    return log
