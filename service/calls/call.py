"""One admitted call while the engine works on it; lives on the event loop."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple, Self

from dragoman.errors import DragomanError, QueueFullError, TextFailedError
from service.queue.mailbox import Reservation
from service.registry.catalog import Intake
from service.segment import Segment
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.document import Document

# One text of a call: on its way, or the error that stands in place of its translation.
Text = Document | DragomanError

# Submitting or withdrawing as many segments takes a millisecond of the event loop; then others have their turn.
_SLICE: Final = 128
# Segments of one call that wait or are decoded. It bounds the memory that a call takes, and what its end costs.
_WINDOW: Final = 1_024
# Between two tries to get into a full queue, whatever it said.
_SHORTEST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0


class Read(NamedTuple):
    """What was read of one text.

    Attributes:
        number: of the text.
        segments: that were found.
        last: whether there are no more.
        error: in place of all that, why the text cannot be read.
    """

    number: int
    segments: Sequence[Segment] = ()
    last: bool = True
    error: DragomanError | None = None


# Reads the next portion of texts, and removes those that it has read to their end.
Reads = Callable[[deque[tuple[int, Document]]], Awaitable[Sequence[Read]]]


class Call:
    """The texts of one call, what of them is unfinished, and a wake-up for the handler that waits.

    Its handler gives :meth:`progress` to the segments of each document, submits the texts if they are small or else
    feeds them, and awaits :meth:`complete` once or :meth:`moved` again and again, all in an `async with` block of the
    call. A text on which the engine fails has that error in place of its outcome; every other error of a segment ends
    the call.
    """

    def __init__(
        self,
        intake: Intake,
        metrics: Metrics,
        record: CallStats,
        *,
        all_or_nothing: bool = False,
        one_by_one: bool = False,
    ) -> None:
        """A call without texts.

        Args:
            intake: where its segments go.
            metrics: of the server.
            record: of the call.
            all_or_nothing: whether a text on which the engine fails ends the call.
            one_by_one: whether the handler is woken for each text that is finished, not only at the end of all.
        """
        self._intake = intake
        self._metrics = metrics
        self._record = record
        self._all_or_nothing = all_or_nothing
        self._one_by_one = one_by_one
        self._texts: dict[int, Text] = {}
        self._unfinished: dict[int, dict[int, Segment]] = {}  # of each text, by identity
        self._open: set[int] = set()  # texts that have not been read to their end
        self._left = 0  # unfinished segments of all texts
        self._feeding: asyncio.Task[None] | None = None
        self._room = asyncio.Event()  # set when a segment ends
        self._moved: set[int] = set()
        self._wake_up = asyncio.Event()
        self._error: BaseException | None = None

    def submit(self, texts: Mapping[int, Text]) -> None:
        """Queue the segments of all these texts, which have been read, or of none.

        Raises:
            QueueFullError: the queue has no room for them.
            DrainingError: the server is shutting down.
            DragomanError: the engine has failed.
        """
        segments = {index: [] if isinstance(text, DragomanError) else text.segments for index, text in texts.items()}
        together = [segment for group in segments.values() for segment in group]
        if together:
            self._intake.submit(together)
        self._expect(texts)
        for index, group in segments.items():
            self._take_up(index, group)
            self._close(index)

    def begin(self, texts: Mapping[int, Text], read: Reads, promise: Reservation) -> None:
        """Feed these texts while the handler goes on; what fails there ends the call.

        Args:
            texts: of which none is expected yet.
            read: see :meth:`feed`.
            promise: see :meth:`feed`.
        """
        self._expect(texts)
        self._feeding = asyncio.create_task(self._feed(texts, read, promise))
        self._feeding.add_done_callback(self._note_fed)

    async def feed(self, texts: Mapping[int, Text], read: Reads) -> None:
        """Read texts and queue their segments, portion by portion, as earlier ones leave; may be called again.

        A full queue makes it wait.

        Args:
            texts: that have been let in.
            read: reads the next portion of those that have not been read yet.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: a segment failed meanwhile.
        """
        self._expect(texts)
        await self._feed(texts, read, None)

    def progress(self, index: int, segment: Segment) -> None:
        """Note that a segment of text `index` has a new token or is finished."""
        self._moved.add(index)
        unfinished = self._unfinished[index]
        if segment.finished and unfinished.pop(id(segment), None) is not None:
            self._left -= 1
            self._room.set()
            self._observe(segment)
            if segment.error is not None:
                self._note_failed(index, segment.error)
            if self.finished(index):
                self._finish(index)
        if segment.wants_deltas or self._error or self._ended:
            self._wake_up.set()

    def wake(self) -> None:
        """Let the handler look around, with or without news."""
        self._wake_up.set()

    def finished(self, index: int) -> bool:
        """Whether a text has been read to its end, and all its segments are finished."""
        return not self._unfinished[index] and index not in self._open

    def text(self, index: int) -> Text:
        """A text: its document, or its error."""
        return self._texts[index]

    def forget(self, index: int) -> None:
        """Let go of a text that is finished and answered."""
        del self._texts[index], self._unfinished[index]

    async def complete(self) -> None:
        """Wait until all texts have been read to their ends, and all segments are finished.

        Raises:
            DragomanError: a segment failed.
        """
        while not self._ended:
            await self.moved()

    async def moved(self) -> set[int]:
        """Wait for progress, and say which texts have new tokens or finished segments.

        Raises:
            DragomanError: a segment failed.
        """
        await self._wake_up.wait()
        self._wake_up.clear()
        self._check()
        moved, self._moved = self._moved, set()
        return moved

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Withdraw what is unfinished, slice by slice; nothing happens where nothing is."""
        cancelled: asyncio.CancelledError | None = None
        if self._feeding is not None:
            self._feeding.cancel()
        while part := self._pop_unfinished(_SLICE):
            self._withdraw(part)
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:  # by the deadline and by the client, say: the rest goes, too
                cancelled = error
        if cancelled is not None:
            raise cancelled

    @property
    def _ended(self) -> bool:
        return not self._left and not self._open

    def _expect(self, texts: Mapping[int, Text]) -> None:
        """Take up texts that are let in, without any segments yet."""
        self._record.admitted = True
        for index, text in texts.items():
            self._texts[index] = text
            self._unfinished[index] = {}
            self._open.add(index)

    def _take_up(self, index: int, segments: Sequence[Segment]) -> None:
        self._unfinished[index].update((id(segment), segment) for segment in segments)
        self._left += len(segments)
        self._record.segments += len(segments)

    def _close(self, index: int) -> None:
        """Note that a text has no further segments."""
        self._open.discard(index)
        if self.finished(index):
            self._finish(index)
            self._wake_up.set()

    async def _feed(self, texts: Mapping[int, Text], read: Reads, promise: Reservation | None) -> None:
        complete: list[Read] = []
        unread: deque[tuple[int, Document]] = deque()
        for index, text in texts.items():
            if isinstance(text, DragomanError) or text.complete:
                complete.append(Read(index, () if isinstance(text, DragomanError) else text.segments))
            else:
                unread.append((index, text))
        await self._queue(complete, promise)
        while unread:
            index, document = unread[0]
            if isinstance(self._texts[index], DragomanError):  # it has failed meanwhile
                unread.popleft()
                self._close(index)
                continue
            while self._left >= _WINDOW:
                await self._news()
            await self._queue(await read(unread), promise)
            document.settle(_SLICE)  # its segments are let go as they end
        if promise is not None:
            promise.text_bytes = 0

    async def _queue(self, portion: Sequence[Read], promise: Reservation | None) -> None:
        """Queue the segments of a portion, as soon as there is room."""
        together: list[Segment] = []
        for index, segments, _, error in portion:
            if error is not None:
                self._note_unreadable(index, error)
            if not isinstance(self._texts[index], DragomanError):
                self._take_up(index, segments)
                together += segments
        while together:
            part = _slice(together, self._intake.portion_source_tokens)
            await self._enter(part)
            del together[: len(part)]
            if promise is not None:
                promise.text_bytes -= sum([segment.text_bytes for segment in part])
        for index, _, last, _ in portion:
            if last:
                self._close(index)

    async def _enter(self, segments: Sequence[Segment]) -> None:
        """Submit segments, but for those that are withdrawn meanwhile; wait while the queue is full."""
        while True:
            self._check()
            try:
                self._intake.submit([segment for segment in segments if not segment.cancel_requested], let_in=True)
            except QueueFullError as error:
                pause_s = min(max(error.retry_delay_s or 0.0, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._news()
            else:
                return

    async def _news(self) -> None:
        """Wait until a segment ends."""
        self._room.clear()
        await self._room.wait()
        self._check()

    def _note_fed(self, feeding: "asyncio.Task[None]") -> None:
        if not feeding.cancelled() and (error := feeding.exception()) is not None:
            self._end_with(error)

    def _end_with(self, error: BaseException) -> None:
        self._error = self._error or error
        self._wake_up.set()
        self._room.set()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _pop_unfinished(self, count: int) -> list[Segment]:
        """Forget unfinished segments, at most `count`."""
        unfinished = ((group, key) for group in self._unfinished.values() for key in group)
        return [group.pop(key) for group, key in list(islice(unfinished, count))]

    def _note_failed(self, index: int, error: DragomanError) -> None:
        """A segment of a text has failed."""
        if self._all_or_nothing or not isinstance(error, TextFailedError):
            self._end_with(error)
        else:
            self._fail(index, error)

    def _note_unreadable(self, index: int, error: DragomanError) -> None:
        """A text cannot be read to its end."""
        if self._all_or_nothing:
            self._end_with(error)
        else:
            self._fail(index, error)

    def _fail(self, index: int, error: DragomanError) -> None:
        self._texts[index] = error
        siblings = self._unfinished[index]
        self._left -= len(siblings)
        self._withdraw(list(siblings.values()))
        siblings.clear()

    def _finish(self, index: int) -> None:
        self._moved.add(index)
        if self._one_by_one:
            self._wake_up.set()

    def _withdraw(self, segments: Sequence[Segment]) -> None:
        if segments:
            # Counted first: once slots are seen to be free, so is the count.
            self._metrics.cancelled_segments_total.inc(len(segments))
            self._intake.cancel(segments)
            for segment in segments:
                self._record.note(segment)

    def _observe(self, segment: Segment) -> None:
        self._record.note(segment)
        if segment.first_token_s is not None and segment.submitted_s is not None:
            self._metrics.time_to_first_token_seconds.observe(segment.first_token_s - segment.submitted_s)


def _slice(segments: Sequence[Segment], source_tokens: int) -> list[Segment]:
    """The first segments, as many as may be submitted at once: at least one."""
    part: list[Segment] = []
    for segment in segments[:_SLICE]:
        source_tokens -= len(segment.source_ids)
        if part and source_tokens < 0:
            break
        part.append(segment)
    return part
