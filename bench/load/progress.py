"""How far a load test is, on stderr while it runs: a bar on a terminal, else a line a second."""

import asyncio
import sys
from collections.abc import Callable

from tqdm import tqdm

from bench.load.generator import Generator
from bench.load.samples import Samples

_BAR_INTERVAL_S = 0.25
_LINE_INTERVAL_S = 1.0
_BAR_FORMAT = "{percentage:3.0f}%|{bar:20}| {n:.0f}/{total:g} {unit} [{elapsed}<{remaining}]{postfix}"


async def show_progress(generator: Generator, samples: Samples, end_s: float, requests: int | None) -> None:
    """Show the progress until cancelled: in seconds of `end_s`, or in requests where their number is set."""
    last = 0.0, 0

    def text() -> str:
        nonlocal last
        (then_s, then), last = last, (generator.now_s(), samples.completed)
        per_second = (last[1] - then) / (last[0] - then_s)
        if last[0] < samples.warmup_s:
            return f"warm-up, {generator.in_flight} in flight"
        answered = f"{samples.completed} answered, {per_second:.1f}/s"
        return f"{answered}, {generator.in_flight} in flight, {samples.unanswered} not answered"

    def line() -> str:
        return f"{generator.now_s():.0f} s: {text()}"

    if requests:
        await _show(lambda: samples.completed + samples.unanswered, requests, "requests", line, text)
    else:
        await _show(generator.now_s, end_s, "s", line, text)


async def show_count(done: Callable[[], int], total: int, what: str) -> None:
    """Show until cancelled how many of `total` are done, before there is a load."""
    await _show(done, total, what, lambda: f"{done()} of {total} {what}", lambda: "")


async def _show(
    done: Callable[[], float], total: float, unit: str, line: Callable[[], str], beside_bar: Callable[[], str]
) -> None:
    if not sys.stderr.isatty():
        while True:
            await asyncio.sleep(_LINE_INTERVAL_S)
            print(line(), file=sys.stderr, flush=True)
    with tqdm(total=total, unit=unit, bar_format=_BAR_FORMAT) as bar:
        while True:
            await asyncio.sleep(_BAR_INTERVAL_S)
            bar.set_postfix_str(beside_bar(), refresh=False)
            bar.update(min(done(), total) - bar.n)
