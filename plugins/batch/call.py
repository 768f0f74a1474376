"""A call whose texts come one after the other, and are answered so: as many are on their way as its window has room."""

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
    """A call that takes some texts after the others with :meth:`feed`; those that are answered it forgets."""

    def __init__(
        self, parts: Sequence[Part], worker: TextWorker, metrics: Metrics, record: CallStats, window: Window
    ) -> None:
        """Make a call without texts, which all have one part."""
        super().__init__(parts, worker, metrics, record)
        self._window = window
        self._sizes: dict[int, int] = {}  # of the texts on their way, in bytes, by their numbers
        self._forgotten = asyncio.Event()

    @property
    def held(self) -> int:
        """Texts that have come and were not forgotten."""
        return len(self._texts)

    async def feed(self, contents: Sequence[str]) -> None:
        """Take more texts, read them and queue their segments, as there is room in the window and in the queue.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed meanwhile.
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
        """Let the handler look around, with or without news."""
        self._wake_up.set()

    def ready(self, *, in_order: bool) -> list[int]:
        """List the texts that are finished and were not forgotten; in order: those before the first that is not."""
        if not in_order:
            return sorted(self._finished)
        ready = []
        for number in self._texts:
            if number not in self._finished:
                break
            ready.append(number)
        return ready

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of texts that are finished and answered: there is room for others."""
        for number in numbers:
            del self._texts[number], self._sizes[number]
            self._finished.remove(number)
        self._forgotten.set()

    def _progress(self, number: int, segment: Segment) -> None:
        super()._progress(number, segment)
        if segment.finished and number in self._finished:
            self._finish(number)
