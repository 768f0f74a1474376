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
    if sys.stderr.isatty():
        await _show_bar(generator, samples, end_s, requests)
    else:
        await _show_lines(generator, samples)


async def show_count(done: Callable[[], int], total: int, what: str) -> None:
    """Show until cancelled how many of `total` are done, before there is a load."""
    if not sys.stderr.isatty():
        while True:
            await asyncio.sleep(_LINE_INTERVAL_S)
            print(f"{done()} of {total} {what}", file=sys.stderr, flush=True)
    with tqdm(total=total, unit=what, bar_format=_BAR_FORMAT) as bar:
        while True:
            await asyncio.sleep(_BAR_INTERVAL_S)
            bar.update(done() - bar.n)


async def _show_bar(generator: Generator, samples: Samples, end_s: float, requests: int | None) -> None:
    rate = _Rate()
    total, unit = (requests, "requests") if requests else (end_s, "s")
    with tqdm(total=total, unit=unit, bar_format=_BAR_FORMAT) as bar:
        while True:
            await asyncio.sleep(_BAR_INTERVAL_S)
            done = samples.completed + samples.unanswered if requests else generator.now_s()
            bar.set_postfix_str(_text(generator, samples, rate), refresh=False)
            bar.update(min(done, total) - bar.n)


async def _show_lines(generator: Generator, samples: Samples) -> None:
    rate = _Rate()
    while True:
        await asyncio.sleep(_LINE_INTERVAL_S)
        text = _text(generator, samples, rate)
        print(f"{generator.now_s():.0f} s: {text}", file=sys.stderr, flush=True)


class _Rate:
    """Answers per second since it was last asked."""

    def __init__(self) -> None:
        self._last = (0.0, 0)

    def since_last(self, now_s: float, completed: int) -> float:
        then_s, then_completed = self._last
        self._last = (now_s, completed)
        return (completed - then_completed) / (now_s - then_s)


def _text(generator: Generator, samples: Samples, rate: _Rate) -> str:
    now_s = generator.now_s()
    per_second = rate.since_last(now_s, samples.completed)
    if now_s < samples.warmup_s:
        return f"warm-up, {generator.in_flight} in flight"
    answered = f"{samples.completed} answered, {per_second:.1f}/s"
    return f"{answered}, {generator.in_flight} in flight, {samples.unanswered} not answered"
