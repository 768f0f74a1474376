"""Work on a thread beside a block, which ends it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run the work while the block runs.

    Args:
        work: given an event that is set once the block has ended; then it is waited for.

    Raises:
        Exception: what the work raised, where the block itself ended well.
    """
    ended, failures = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            work(ended)
        except Exception as error:  # told to the thread of the block
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]
