"""Repeats a failed run over several items in halves, until each item that makes the run fail is alone."""

from collections.abc import Callable


def run_isolated(
    run: Callable[[int, int], None], start: int, stop: int, note: Callable[[Exception], None]
) -> list[int]:
    """Run over the items [start, stop), at least one; where a run fails, run over its halves.

    Args:
        run: does the work of [start, stop); may be called again for a part of a failed run.
        note: called with every error, also with an error that does not occur again.

    Returns:
        The items that fail alone, in order.
    """
    try:
        run(start, stop)
    except Exception as error:
        return run_halves(error, run, start, stop, note)
    return []


def run_halves(
    error: Exception, run: Callable[[int, int], None], start: int, stop: int, note: Callable[[Exception], None]
) -> list[int]:
    """Do the rest of `run_isolated` after the run over [start, stop) has failed with an error."""
    note(error)
    if stop - start == 1:
        return [start]
    middle = (start + stop) // 2
    return run_isolated(run, start, middle, note) + run_isolated(run, middle, stop, note)
