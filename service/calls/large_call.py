"""A call whose texts are large, or come one after the other: they are read and queued as there is room."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import repeat
from typing import Final

from dragoman.errors import DragomanError, QueueFullError
from service.calls.call import SLICE, Call, OpenText
from service.calls.text_worker import Read, Text, TextWorker
from service.calls.window import Window
from service.options import RequestOptions
from service.queue.reservation import Reservation
from service.registry.catalog import ServedModel
from service.segment import Segment
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.document import Document

# Segments of one call that wait or are decoded. It bounds the memory that a call takes, and what its end costs.
_WINDOW: Final = 1_024
# Between two tries to get into a full queue, whatever it said.
_SHORTEST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0


class LargeCall(Call):
    """A call of texts of any size.

    It takes all texts with :meth:`add`, or some after the other with :meth:`feed`, and is answered text by text then.
    """

    def __init__(
        self,
        model: ServedModel,
        options: RequestOptions,
        worker: TextWorker,
        metrics: Metrics,
        record: CallStats,
        *,
        window: Window | None = None,
    ) -> None:
        """Make a call without texts.

        Args:
            model: that translates them; held by the caller as long as the call lasts.
            options: what is asked for.
            worker: of the server.
            metrics: of the server.
            record: of the call.
            window: where texts come and are answered one by one, of how many at a time; None: all are added at once.
        """
        super().__init__(model, options, worker, metrics, record)
        self._window = window
        self._held_bytes = 0
        self._segment_ended = asyncio.Event()
        self._forgotten = asyncio.Event()
        self._feeding: asyncio.Task[None] | None = None
        self._reservations = ExitStack()

    @property
    def held(self) -> int:
        """Texts that have come and were not forgotten."""
        return len(self._texts)

    async def add(self, contents: Sequence[str]) -> None:
        """Take all texts; begin to queue their segments where they are not small; as :meth:`Call.add`."""
        self._let_in(await self._open(contents))

    async def feed(self, contents: Sequence[str]) -> None:
        """Take more texts, read them and queue their segments, as there is room in the window and in the queue.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed meanwhile.
        """
        assert self._window is not None
        rest = list(contents)
        while rest:
            if sizes := self._window.fitting(rest, len(self._texts), self._held_bytes):
                texts = await self._open(rest[: len(sizes)])
                self._expect(texts, sizes)
                await self._feed(texts, None)
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
            self._held_bytes -= self._texts.pop(number).size_bytes
            self._finished.remove(number)
        self._forgotten.set()

    async def __aexit__(self, *_: object) -> None:
        """Read no more, and withdraw what is unfinished."""
        if self._feeding is not None:
            self._feeding.cancel()
        self._reservations.close()
        await super().__aexit__()

    async def _open(self, contents: Sequence[str]) -> dict[int, Text]:
        """Make documents of texts, which get the next numbers."""
        first = self.count
        self.count += len(contents)
        return await self._worker.open(self._translator, self._options, contents, first, self._progress)

    def _take(self, texts: Mapping[int, Text], text_bytes: int) -> None:
        """Queue the segments of texts, or begin to where they are not read yet."""
        if all(isinstance(text, DragomanError) or text.complete for text in texts.values()):
            super()._take(texts, text_bytes)
            return
        reservation = self._reservations.enter_context(self._intake.admission.reserve(self._options, text_bytes))
        self._expect(texts)
        self._feeding = asyncio.create_task(self._feed(texts, reservation))
        self._feeding.add_done_callback(self._note_fed)

    def _expect(self, texts: Mapping[int, Text], sizes: Sequence[int] = ()) -> None:
        """Take texts that are let in, without any segments yet.

        Args:
            texts: by their numbers.
            sizes: that they take of the window, in bytes; none: the call has no window.
        """
        self._record.admitted = True
        self._unread += len(texts)
        self._held_bytes += sum(sizes)
        for (number, text), size_bytes in zip(texts.items(), sizes or repeat(0), strict=False):
            self._texts[number] = OpenText(text, {}, read=False, size_bytes=size_bytes)

    async def _feed(self, texts: Mapping[int, Text], reservation: Reservation | None) -> None:
        """Read texts and queue their segments, portion by portion, as earlier ones leave."""
        complete: list[Read] = []
        unread: deque[tuple[int, Document]] = deque()
        for number, text in texts.items():
            if isinstance(text, DragomanError) or text.complete:
                complete.append(Read(number, () if isinstance(text, DragomanError) else text.segments))
            else:
                unread.append((number, text))
        await self._queue(complete, reservation)
        while unread:
            number, document = unread[0]
            if isinstance(self._texts[number].content, DragomanError):  # it has failed meanwhile
                unread.popleft()
                self._close(number)
                continue
            while self._unfinished >= _WINDOW:
                await self._await_end()
            await self._queue(await self._worker.read(self._options.client, unread), reservation)
            document.settle(SLICE)  # its segments are let go as they end
        if reservation is not None:
            reservation.text_bytes = 0

    async def _queue(self, portion: Sequence[Read], reservation: Reservation | None) -> None:
        """Queue the segments of a portion, slice by slice, as soon as there is room."""
        together: list[Segment] = []
        for number, segments, _, error in portion:
            if error is not None:
                self._fail_text(number, error)
            text = self._texts[number]
            if not isinstance(text.content, DragomanError):
                text.unfinished.update(dict.fromkeys(segments))
                together += segments
        self._unfinished += len(together)
        self._record.segments += len(together)
        while together:
            part = _first_of(together, self._intake.admission.portion_source_tokens)
            await self._submit(part)
            del together[: len(part)]
            if reservation is not None:
                reservation.text_bytes -= sum([segment.text_bytes for segment in part])
        for number, _, last, _ in portion:
            if last:
                self._close(number)

    async def _submit(self, segments: Sequence[Segment]) -> None:
        """Queue segments as soon as there is room; those that were withdrawn meanwhile stay away.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed meanwhile.
        """
        while True:
            if self._error is not None:
                raise self._error
            try:
                self._intake.submit([segment for segment in segments if not segment.cancel_requested], let_in=True)
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

    def _close(self, number: int) -> None:
        """Note that a text has no further segments."""
        text = self._texts[number]
        text.read = True
        self._unread -= 1
        if not text.unfinished:
            self._moved.add(number)
            self._finished.add(number)
            self._wake_up.set()

    def _progress(self, number: int, segment: Segment) -> None:
        super()._progress(number, segment)
        if segment.finished:
            self._segment_ended.set()
            if self._window is not None and number in self._finished:
                self._wake_up.set()

    def _end_with(self, error: BaseException) -> None:
        super()._end_with(error)
        self._segment_ended.set()

    def _note_fed(self, feeding: "asyncio.Task[None]") -> None:
        if not feeding.cancelled() and (error := feeding.exception()) is not None:
            self._end_with(error)


def _first_of(segments: Sequence[Segment], source_tokens: int) -> list[Segment]:
    """Choose the first segments, as many as may be submitted at once: at least one."""
    part: list[Segment] = []
    for segment in segments[:SLICE]:
        source_tokens -= segment.cost
        if part and source_tokens < 0:
            break
        part.append(segment)
    return part
