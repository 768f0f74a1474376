"""A run over many that fails, run again in halves until each one that makes it fail stands alone."""

from collections.abc import Callable


def run_isolated(
    run: Callable[[int, int], None], start: int, stop: int, note: Callable[[Exception], None]
) -> list[int]:
    """Run over all of [start, stop), which holds at least one; where a run fails, over its halves.

    Args:
        run: does the work of [start, stop); may be called again for a part of what failed.
        note: told of every failure, of those too that do not come again.

    Returns:
        Those that fail alone, in order.
    """
    try:
        run(start, stop)
    except Exception as error:
        return run_halves(error, run, start, stop, note)
    return []


def run_halves(
    error: Exception, run: Callable[[int, int], None], start: int, stop: int, note: Callable[[Exception], None]
) -> list[int]:
    """Go on as `run_isolated` does where the run over [start, stop) has failed with an error."""
    note(error)
    if stop - start == 1:
        return [start]
    middle = (start + stop) // 2
    return run_isolated(run, start, middle, note) + run_isolated(run, middle, stop, note)
