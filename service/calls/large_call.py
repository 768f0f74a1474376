"""A call whose texts are large, or need several models: the texts are read as there is room in the queue."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import MappingProxyType
from typing import Any, Final

from dragoman.errors import DragomanError, QueueFullError
from service.calls.call import SLICE, Call, OpenText, Part
from service.calls.leg import Leg
from service.calls.text_worker import Read, Result, Text, TextWorker
from service.queue.admission import Reservation
from service.segment import Segment
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics
from service.text.document import Document

# Most segments of one call that wait or are decoded: bounds the memory of a call, and the work at its end.
_WINDOW: Final = 1_024
# Bounds of the pause between two tries to enter a full queue.
_SHORTEST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0


class LargeCall(Call):
    """A call of texts of any size, in several languages, over one leg or more.

    A text goes on to its next leg as soon as the leg before is done. Before its last leg, a text counts as not read to
    its end.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        worker: TextWorker,
        metrics: Metrics,
        record: CallStats,
        *,
        refused: Mapping[int, DragomanError] = MappingProxyType({}),
    ) -> None:
        """Make a call without texts.

        Args:
            refused: errors of the texts that are in no part, by their numbers.
        """
        super().__init__(parts, worker, metrics, record)
        self._refused = refused
        self._segment_ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reservations = ExitStack()
        self._between_legs: deque[int] = deque()  # texts
        self._passing: asyncio.Task[None] | None = None
        self._ended = False

    async def add(self, contents: Sequence[str]) -> None:
        """Take all texts, as :meth:`Call.add`; the segments of texts that are not small are queued later."""
        self.count = len(contents)
        for leg, numbers in self._parts:
            own = {number: contents[number] for number in (range(self.count) if numbers is None else numbers)}
            self._let_in(leg, await self._worker.open(leg.pipeline.translator, leg.options, own, self._progress))
        for number in self._refused:
            self._finish(number)

    def delta(self, number: int) -> str:
        """As :meth:`Call.delta`, but of the last leg alone."""
        is_last = number not in self._refused and self._texts[number].leg.then is None
        return super().delta(number) if is_last else ""

    async def results(self, numbers: Iterable[int]) -> dict[int, Result]:
        """As :meth:`Call.results`; for a refused text, its error."""
        asked = list(numbers)
        results = await super().results([number for number in asked if number not in self._refused])
        return {number: self._refused.get(number) or results[number] for number in asked}

    async def __aexit__(self, *_: object) -> None:
        """Read no more, and withdraw unfinished segments."""
        self._ended = True
        for task in self._tasks:
            task.cancel()
        self._reservations.close()
        await super().__aexit__()

    def _take(self, leg: Leg, texts: Mapping[int, Text], text_bytes: int) -> None:
        """Queue the segments of texts; where texts are not read yet, begin to read them and queue their segments."""
        if all(isinstance(text, DragomanError) or text.complete for text in texts.values()):
            super()._take(leg, texts, text_bytes)
            if leg.then is not None:
                self._unread += len(texts)
                for number in self._finished & texts.keys():
                    self._go_on(number)
            return
        reservation = self._reservations.enter_context(leg.pipeline.intake.admission.reserve(leg.options, text_bytes))
        self._expect(leg, texts)
        self._start(self._feed(leg, texts, reservation))

    def _expect(self, leg: Leg, texts: Mapping[int, Text]) -> None:
        """Take admitted texts, without any segments yet."""
        self._record.admitted = True
        self._unread += len(texts)
        for number, text in texts.items():
            text_bytes = 0 if isinstance(text, DragomanError) else text.text_bytes
            self._texts[number] = OpenText(text, leg, {}, read=False, unread_bytes=text_bytes)

    async def _feed(self, leg: Leg, texts: Mapping[int, Text], reservation: Reservation | None) -> None:
        """Read texts and queue their segments, portion by portion, as earlier ones leave."""
        complete: list[Read] = []
        unread: deque[tuple[int, Document]] = deque()
        for number, text in texts.items():
            if isinstance(text, DragomanError) or text.complete:
                complete.append(Read(number, () if isinstance(text, DragomanError) else text.segments))
            else:
                unread.append((number, text))
        await self._queue(leg, complete, reservation)
        while unread:
            number, document = unread[0]
            if isinstance(self._texts[number].content, DragomanError):  # the text has failed meanwhile
                unread.popleft()
                self._close(number, reservation)
                continue
            while self._unfinished >= _WINDOW:
                await self._await_end()
            await self._queue(leg, await self._worker.read(self._options.client, unread), reservation)
            document.settle(SLICE)  # finished segments are freed early

    async def _queue(self, leg: Leg, portion: Sequence[Read], reservation: Reservation | None) -> None:
        """Queue the segments of a portion, slice by slice, as soon as there is room."""
        together: list[Segment] = []
        for number, segments, _, error in portion:
            if error is not None:
                self._fail_text(number, error)
            text = self._texts[number]
            if not isinstance(text.content, DragomanError):
                text.unfinished.update(dict.fromkeys(segments))
                text.unread_bytes -= sum([segment.decode.text_bytes for segment in segments])
                together += segments
        self._unfinished += len(together)
        while together:
            first = _first_of(together, leg.pipeline.intake.admission.portion_source_tokens)
            text_bytes = sum([segment.decode.text_bytes for segment in first])  # now: a segment may get a shared decode
            await self._submit(leg, first)
            del together[: len(first)]
            if reservation is not None:
                reservation.text_bytes -= text_bytes
        for number, _, last, _ in portion:
            if last:
                self._close(number, reservation)

    async def _submit(self, leg: Leg, segments: Sequence[Segment]) -> None:
        """Queue segments as soon as there is room, without segments that were withdrawn meanwhile.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed meanwhile.
        """
        while True:
            if self._error is not None:
                raise self._error
            try:
                wanted = [segment for segment in segments if not segment.cancel_requested]
                leg.pipeline.intake.submit(wanted, let_in=True)
                self._record.segments += len(wanted)
            except QueueFullError as error:
                pause_s = min(max(error.retry_delay_s or 0.0, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._await_end()
            else:
                return

    async def _await_end(self) -> None:
        """Wait until a segment ends.

        Raises:
            DragomanError: the call has failed meanwhile.
        """
        self._segment_ended.clear()
        await self._segment_ended.wait()
        if self._error is not None:
            raise self._error

    def _close(self, number: int, reservation: Reservation | None) -> None:
        """Note that a text has no further segments on its leg, and reserve nothing for it any more."""
        text = self._texts[number]
        text.read = True
        if reservation is not None:
            reservation.text_bytes -= text.unread_bytes  # of a failed text; else what lies between its segments
        if text.leg.then is None:
            self._unread -= 1
        if not text.unfinished:
            self._go_on(number)

    def _progress(self, number: int, segment: Segment) -> None:
        super()._progress(number, segment)
        if segment.finished:
            self._segment_ended.set()
            if number in self._finished and self._texts[number].leg.then is not None:
                self._go_on(number)

    def _go_on(self, number: int) -> None:
        """Give a text to its next leg; the text is finished where there is no next leg, or the text has failed."""
        text = self._texts[number]
        if text.leg.then is None:
            self._finish(number)
        elif isinstance(text.content, DragomanError):
            text.leg = text.leg._replace(then=None)
            self._unread -= 1
            self._finish(number)
        elif not self._ended:
            self._finished.discard(number)
            self._between_legs.append(number)
            if self._passing is None or self._passing.done():
                self._passing = self._start(self._pass_on())

    async def _pass_on(self) -> None:
        """Give texts to their next legs, one after the other: while there is no room for a text, the others wait."""
        while self._between_legs:
            number = self._between_legs.popleft()
            text = self._texts[number]
            [result] = (await self._worker.results(self._options.client, {number: text.content})).values()
            if isinstance(result, DragomanError):
                text.content = result
                self._go_on(number)
                continue
            leg = text.leg.then
            assert leg is not None, "it waits for one"
            own = {number: result.text}
            texts = await self._worker.open(leg.pipeline.translator, leg.options, own, self._progress, of_caller=False)
            text.content, text.leg, text.read, text.before = texts[number], leg, False, result
            await self._feed(leg, texts, None)

    def _end_with(self, error: BaseException) -> None:
        super()._end_with(error)
        self._segment_ended.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do some work until it is done or the call ends; an error of the work ends the call."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)
        return task

    def _note_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end_with(error)


def _first_of(segments: Sequence[Segment], source_tokens: int) -> list[Segment]:
    """Choose the first segments that may be submitted together: at least one."""
    part: list[Segment] = []
    for segment in segments[:SLICE]:
        source_tokens -= segment.decode.cost
        if part and source_tokens < 0:
            break
        part.append(segment)
    return part
