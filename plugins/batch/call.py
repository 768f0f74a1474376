"""A call that receives texts one after another, and answers each; a window bounds the pending texts."""

import asyncio
from collections.abc import Iterable, Sequence

from plugins.batch.window import Window
from service.calls.call import Part
from service.calls.large_call import LargeCall
from service.calls.text_worker import TextWorker
from service.segment import Segment
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics


class FedCall(LargeCall):
    """A call that takes more texts by :meth:`feed`, and forgets answered texts."""

    def __init__(
        self, parts: Sequence[Part], worker: TextWorker, metrics: Metrics, record: CallStats, window: Window
    ) -> None:
        """Make a call without texts; all its texts share the one part."""
        super().__init__(parts, worker, metrics, record)
        self._window = window
        self._sizes: dict[int, int] = {}  # of the pending texts, in bytes, by text number
        self._forgotten = asyncio.Event()

    @property
    def held(self) -> int:
        """Number of texts that were received and not forgotten."""
        return len(self._texts)

    async def feed(self, contents: Sequence[str]) -> None:
        """Take more texts, parse them and queue their segments, as the window and the queue have room.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed in the meantime.
        """
        [(leg, _)] = self._parts
        rest = list(contents)
        while rest:
            if sizes := self._window.fitting(rest, len(self._texts), sum(self._sizes.values())):
                own = dict(enumerate(rest[: len(sizes)], self.count))
                self.count += len(own)
                texts = await self._worker.open(leg.pipeline.translator, leg.options, own, self._progress)
                self._sizes |= zip(own, sizes, strict=True)
                self._expect(leg, texts)
                await self._feed(leg, texts, None)
                del rest[: len(sizes)]
            else:
                self._forgotten.clear()
                await self._forgotten.wait()

    def wake(self) -> None:
        """Wake the handler, with or without news."""
        self._wake_up.set()

    def ready(self, *, in_order: bool) -> list[int]:
        """List finished texts that are not forgotten; if in order, only those before the first unfinished text."""
        if not in_order:
            return sorted(self._finished)
        ready = []
        for number in self._texts:
            if number not in self._finished:
                break
            ready.append(number)
        return ready

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget finished and answered texts, which makes room for others."""
        for number in numbers:
            del self._texts[number], self._sizes[number]
            self._finished.remove(number)
        self._forgotten.set()

    def _progress(self, number: int, segment: Segment) -> None:
        super()._progress(number, segment)
        if segment.finished and number in self._finished:
            self._finish(number)
