"""A call whose texts take two models: into a pivot language, and from there into the language that is wanted.

It looks to its handler as a :class:`LargeCall` does. Each text goes on to the second model as soon as the first is done
with it; while the second has no room, the first is given no more texts than its window holds.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from itertools import takewhile
from typing import Self

from dragoman.errors import DragomanError
from service.calls.large_call import LargeCall
from service.calls.text_worker import Result
from service.decode import worst
from service.text.quality_estimate import rounded
from service.text.result import TextResult


class PivotCall:
    """The texts of one call on their way through two models; lives on the event loop."""

    def __init__(self, into: LargeCall, out_of: LargeCall) -> None:
        """Join two calls without texts.

        Args:
            into: translates into the pivot language, and takes the texts as the handler gives them.
            out_of: translates from there, and has a window.
        """
        self._into = into
        self._out_of = out_of
        self._pivots: dict[int, TextResult] = {}  # what the first model made of texts that the second has
        self._place: dict[int, int] = {}  # the number of such a text in the second call ...
        self._number: dict[int, int] = {}  # ... and back
        self._failed: dict[int, DragomanError] = {}  # texts that end with the first model
        self._news: set[int] = set()
        self._held: dict[int, None] = {}  # not forgotten by the handler, in the order of their numbers
        self._passing: asyncio.Task[None] | None = None
        self._exits = AsyncExitStack()

    @property
    def count(self) -> int:
        """Texts that have come so far: the number of the next one."""
        return self._into.count

    @property
    def held(self) -> int:
        """Texts that have come and were not forgotten."""
        return len(self._held)

    async def add(self, contents: Sequence[str]) -> None:
        """See :meth:`LargeCall.add`; the room that the first model needs decides."""
        self._hold(contents)
        await self._into.add(contents)

    async def feed(self, contents: Sequence[str]) -> None:
        """See :meth:`LargeCall.feed`."""
        self._hold(contents)
        await self._into.feed(contents)

    async def done(self) -> None:
        """See :meth:`LargeCall.done`."""
        while len(self._place) + len(self._failed) < self.count:
            await self.moved()
        await self._out_of.done()

    async def moved(self) -> set[int]:
        """See :meth:`LargeCall.moved`."""
        moved = {self._number[place] for place in await self._out_of.moved()}
        assert self._passing is not None
        if self._passing.done():
            self._passing.result()
        moved |= self._news
        self._news = set()
        return moved

    def wake(self) -> None:
        """See :meth:`LargeCall.wake`."""
        self._out_of.wake()

    def finished(self, number: int) -> bool:
        """See :meth:`LargeCall.finished`."""
        return number in self._failed or (number in self._place and self._out_of.finished(self._place[number]))

    def ready(self, *, in_order: bool) -> list[int]:
        """See :meth:`LargeCall.ready`."""
        if in_order:
            return list(takewhile(self.finished, self._held))
        return sorted([*self._failed, *(self._number[place] for place in self._out_of.ready(in_order=False))])

    def delta(self, number: int) -> str:
        """See :meth:`LargeCall.delta`."""
        return self._out_of.delta(self._place[number]) if number in self._place else ""

    async def results(self, numbers: Iterable[int]) -> dict[int, Result]:
        """See :meth:`LargeCall.results`; counts of the source are those of the first model."""
        asked = list(numbers)
        ended = await self._out_of.results([self._place[number] for number in asked if number in self._place])
        results: dict[int, Result] = {}
        for number in asked:
            if number in self._failed:
                results[number] = self._failed[number]
            else:
                result = ended[self._place[number]]
                results[number] = result if isinstance(result, DragomanError) else _both(self._pivots[number], result)
        return results

    def forget(self, numbers: Iterable[int]) -> None:
        """See :meth:`LargeCall.forget`."""
        places = []
        for number in numbers:
            del self._held[number]
            if self._failed.pop(number, None) is None:
                places.append(self._place.pop(number))
                del self._pivots[number], self._number[places[-1]]
        self._out_of.forget(places)

    async def __aenter__(self) -> Self:
        for call in (self._out_of, self._into):
            await self._exits.enter_async_context(call)
        self._passing = asyncio.create_task(self._pass_on())
        self._passing.add_done_callback(lambda _: self._out_of.wake())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Withdraw what is unfinished with both models."""
        assert self._passing is not None
        self._passing.cancel()
        try:
            await asyncio.gather(self._passing, return_exceptions=True)
        finally:
            await self._exits.aclose()

    def _hold(self, contents: Sequence[str]) -> None:
        first = self._into.count
        self._held.update(dict.fromkeys(range(first, first + len(contents))))

    async def _pass_on(self) -> None:
        """Give the second model what the first has translated, text by text, until the call ends."""
        while True:
            await self._into.moved()
            for number in self._into.ready(in_order=False):
                [result] = (await self._into.results([number])).values()
                if isinstance(result, DragomanError):
                    self._failed[number] = result
                    self._news.add(number)
                    self._out_of.wake()
                else:
                    place = self._out_of.count
                    self._pivots[number], self._place[number], self._number[place] = result, place, number
                    await self._out_of.feed([result.text])
                self._into.forget([number])


def _both(pivot: TextResult, result: TextResult) -> TextResult:
    """Put the results of both models for a text together."""
    return TextResult(
        text=result.text,
        source_tokens=pivot.source_tokens,
        target_tokens=result.target_tokens,
        finish_reason=worst({pivot.finish_reason, result.finish_reason}),
        segments=pivot.segments,
        mean_log_probability=result.mean_log_probability,
        unknown_pieces=pivot.unknown_pieces,
        split=pivot.split or result.split,
        alternatives=[
            alternative._replace(finish_reason=worst({pivot.finish_reason, alternative.finish_reason}))
            for alternative in result.alternatives
        ],
        term_segments=result.term_segments,
        glossary_misses=tuple(dict.fromkeys((*pivot.glossary_misses, *result.glossary_misses))),
        quality_estimate=(
            None if result.quality_estimate is None else _product(pivot.quality_estimate, result.quality_estimate)
        ),
        segment_qualities=[
            quality._replace(estimate=_product(pivot.quality_estimate, quality.estimate))
            for quality in result.segment_qualities
        ],
    )


def _product(pivot: float | None, estimate: float) -> float:
    """Estimate what both models made: of a text that the first had no words of, what the second says."""
    return estimate if pivot is None else rounded(pivot * estimate)
