"""The server's own word during a load: its metrics page again and again, and what changes on it.

Pages are kept as they come and read afterwards: reading one while the load runs would make requests late.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from itertools import pairwise
from typing import Any, NamedTuple

from bench import metrics_page
from bench.load.calls import NoServerError

_TIMEOUT_S = 5.0
_SLOTS = "dragoman_decode_batch_slots"
_HITS, _MISSES = "dragoman_result_cache_hits_total", "dragoman_result_cache_misses_total"
_COALESCED = "dragoman_coalesced_segments_total"
_CPU = "process_cpu_seconds_total"


class Page(NamedTuple):
    """What the metrics page said."""

    at_s: float  # when it was asked for, on the clock of the load
    text: str


class Scraper:
    """Asks for the page again and again, from a thread."""

    def __init__(self, address: str, interval_s: float) -> None:
        self.pages: list[Page] = []
        self._address = address
        self._interval_s = interval_s

    async def check(self) -> None:
        """Ask for one page, which does not count; raises a NoServerError where there is none."""
        try:
            await asyncio.to_thread(self._fetch)
        except (OSError, ValueError, HTTPException) as error:
            raise NoServerError(f"no metrics at {metrics_page.url(self._address)}: {error}") from error

    async def run(self, now_s: Callable[[], float]) -> None:
        """Collect pages until cancelled, the first after one interval."""
        at_s = now_s()
        while True:
            await asyncio.sleep(max(self._interval_s - (now_s() - at_s), 0.0))
            at_s = now_s()
            await self.look(at_s)

    async def look(self, at_s: float) -> None:
        """Ask for one more page; one that does not come is left out."""
        with suppress(OSError, HTTPException):
            self.pages.append(Page(at_s, await asyncio.to_thread(self._fetch)))

    def _fetch(self) -> str:
        return metrics_page.fetch(self._address, _TIMEOUT_S)


def server_series(pages: Sequence[Page], start_s: float) -> dict[str, Any]:
    """Compute what the pages say about each interval between two of them, in columns, ready for JSON.

    Returns:
        `t_s`, the end of each interval that ends after the start, in seconds since it, and for each figure a list as
        long; None where a page does not say it.
    """
    told = [(page.at_s - start_s, metrics_page.Page.parse(page.text).sums()) for page in pages]
    rows = [_interval(*before, *after) for before, after in pairwise(told) if after[0] >= 0]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def totals(pages: Sequence[Page], start_s: float, requests: int) -> dict[str, float | None]:
    """Compute what the pages say of a whole load; None for what they do not say. All callers of the server count.

    A server that was started again says nothing of the whole load.

    Returns:
        `result_cache_share`: which share of the requested segments came from the result cache, from 0 to 1; a segment
        that shared the decoding of an identical one did not. `server_cpu_ms`: processor time for each of the requests.
    """
    first = next((place for place, page in reversed([*enumerate(pages)]) if page.at_s <= start_s), 0)
    told = [metrics_page.Page.parse(page.text).sums() for page in pages[first:]]
    growths = [_growth(before, after) for before, after in pairwise(told)]

    def grown(name: str) -> float:
        return sum(growth(name) for growth in growths)

    segments = sum(map(grown, (_HITS, _MISSES, _COALESCED)))
    return {
        "result_cache_share": grown(_HITS) / segments if segments > 0 else None,
        "server_cpu_ms": _known(1e3 * grown(_CPU) / requests) if requests else None,
    }


def _interval(from_s: float, before: dict[str, float], to_s: float, after: dict[str, float]) -> dict[str, float | None]:
    grown = _growth(before, after)

    def per_second(name: str) -> float | None:
        return _known(grown(name) / (to_s - from_s)) if to_s > from_s else None

    steps = grown(f"{_SLOTS}_count")
    return {
        "t_s": to_s,
        "slots_per_step": _known(grown(f"{_SLOTS}_sum") / steps) if steps else 0.0,
        "queue_segments": after.get("dragoman_queue_segments"),
        "queue_source_tokens": after.get("dragoman_queue_source_tokens"),
        "steps_per_second": per_second(f"{_SLOTS}_count"),
        "target_tokens_per_second": per_second("dragoman_target_tokens_total"),
        "cpu_cores": per_second(_CPU),
        "resident_mib": _known(after.get("process_resident_memory_bytes", math.nan) / 2**20),
    }


def _growth(before: dict[str, float], after: dict[str, float]) -> Callable[[str], float]:
    """Return how much a counter has grown; not a number where it fell, because the server was started again."""

    def growth(name: str) -> float:
        grown = after.get(name, math.nan) - before.get(name, math.nan)
        return grown if grown >= 0 else math.nan

    return growth


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
