"""How far a load test is, a line a second on stderr while it runs; on a terminal each in the place of the last."""

import asyncio
import sys
from collections.abc import Callable

from bench.load.generator import Generator
from bench.load.samples import Samples

_INTERVAL_S = 1.0
_REST_EMPTY = "\033[K"  # of the line, on a terminal


async def show(line: Callable[[], str]) -> None:
    """Show a line again and again, until cancelled."""
    before, after = ("\r", _REST_EMPTY) if sys.stderr.isatty() else ("", "\n")
    try:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            print(f"{before}{line()}", end=after, file=sys.stderr, flush=True)
    finally:
        if before:
            print(before, end=after, file=sys.stderr, flush=True)


async def show_progress(generator: Generator, samples: Samples) -> None:
    """Show what became of the requests so far, until cancelled."""
    last = 0.0, 0

    def line() -> str:
        nonlocal last
        (then_s, then), last = last, (generator.now_s(), samples.completed)
        per_second = (last[1] - then) / (last[0] - then_s)
        if last[0] < samples.warmup_s:
            return f"{last[0]:.0f} s: warm-up, {generator.in_flight} in flight"
        answered = f"{last[0]:.0f} s: {samples.completed} answered, {per_second:.1f}/s"
        return f"{answered}, {generator.in_flight} in flight, {samples.unanswered} not answered"

    await show(line)
