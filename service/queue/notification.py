"""News of decodes and segments for those who wait for them."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from service.decode import Decode
from service.segment import Segment

_News = TypeVar("_News", Decode, Segment)


class Notifier:
    """Tells from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `on_progress` of all on this loop from now on; without one, on the thread that tells."""
        self._loop = loop

    def tell(self, progressed: Sequence[Decode]) -> None:
        """Call `on_progress` of all, with one wake-up of the event loop."""
        if self._loop is None:
            notify(progressed)
        else:
            try:
                self._loop.call_soon_threadsafe(notify, progressed)
            except RuntimeError:
                if not self._loop.is_closed():  # else nobody waits any more
                    raise


def notify(news: Sequence[_News]) -> None:
    """Call `on_progress` of all, but of those that were cancelled.

    Raises:
        Exception: what the last of them raised that failed.
    """
    failure: Exception | None = None
    for each in news:
        if each.cancel_requested:
            continue
        try:
            each.on_progress(each)
        except Exception as error:  # one caller's fault must not keep the news from the others
            failure = error
    if failure is not None:
        raise failure
