"""A call whose texts go to several models, since they are in several languages, or in one that no model reads.

It looks to its handler as a :class:`Call` does whose texts are added at once.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self, TypeVar

from dragoman.errors import DragomanError
from service.calls.call import Call
from service.calls.pivot_call import PivotCall
from service.calls.text_worker import Result

_T = TypeVar("_T")


class MixedCall:
    """The texts of one call, each on its way through one of several calls; lives on the event loop."""

    def __init__(
        self, parts: Sequence[tuple[Call | PivotCall, Sequence[int]]], refused: Mapping[int, DragomanError]
    ) -> None:
        """Join calls without texts.

        Args:
            parts: calls, each with the numbers of the texts that it takes.
            refused: texts that none of them takes, by their numbers, and why.
        """
        self._parts = parts
        self._refused = dict(refused)
        self._place = {number: (call, place) for call, numbers in parts for place, number in enumerate(numbers)}
        self._news = set(refused)
        self._exits = AsyncExitStack()

    @property
    def count(self) -> int:
        """Texts of the call."""
        return len(self._place) + len(self._refused)

    async def add(self, contents: Sequence[str]) -> None:
        """See :meth:`Call.add`; what one of the calls is refused with, all are."""
        for call, numbers in self._parts:
            await call.add([contents[number] for number in numbers])

    async def done(self) -> None:
        """See :meth:`Call.done`."""
        await _run([call.done() for call, _ in self._parts], asyncio.FIRST_EXCEPTION)

    async def moved(self) -> set[int]:
        """See :meth:`Call.moved`; what is refused is the first news."""
        if not self._news:
            found = await _run([call.moved() for call, _ in self._parts], asyncio.FIRST_COMPLETED)
            return {self._parts[part][1][place] for part, places in found.items() for place in places}
        news, self._news = self._news, set()
        return news

    def finished(self, number: int) -> bool:
        """See :meth:`Call.finished`."""
        if number in self._refused:
            return True
        call, place = self._place[number]
        return call.finished(place)

    def delta(self, number: int) -> str:
        """See :meth:`Call.delta`."""
        if number in self._refused:
            return ""
        call, place = self._place[number]
        return call.delta(place)

    async def results(self, numbers: Iterable[int]) -> dict[int, Result]:
        """See :meth:`Call.results`."""
        asked = list(numbers)
        results: dict[int, Result] = dict(self._refused)
        for call, own in self._parts:
            places = [place for number in asked for of, place in [self._place.get(number, (None, 0))] if of is call]
            found = await call.results(places)
            results |= {own[place]: result for place, result in found.items()}
        return {number: results[number] for number in asked}

    async def __aenter__(self) -> Self:
        for call, _ in self._parts:
            await self._exits.enter_async_context(call)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Withdraw what is unfinished with all models."""
        await self._exits.aclose()


async def _run(works: Iterable[Coroutine[Any, Any, _T]], until: str) -> dict[int, _T]:
    """Do several things at once until one, or all, are done; gives what those gave that are done, by their places.

    The others are cancelled.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    if not tasks:
        return {}
    try:
        await asyncio.wait(tasks, return_when=until)
        return {place: task.result() for place, task in enumerate(tasks) if task.done()}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
