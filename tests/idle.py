"""Waiting for a mailbox of which nothing is unfinished any more."""

import time

from service.queue.mailbox import Mailbox


def wait_idle(mailbox: Mailbox, patience_s: float) -> bool:
    """Tell whether everything submitted has ended in time."""
    give_up_s = time.monotonic() + patience_s
    while mailbox.unfinished and time.monotonic() < give_up_s:
        time.sleep(0.001)
    return not mailbox.unfinished
