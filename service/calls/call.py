"""One admitted call while the engine works on it: its texts, from their contents to their results."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from dragoman.errors import DragomanError, TextFailedError
from service.calls.limits import refuse_any
from service.calls.open_texts import OpenTexts
from service.calls.queued_segments import SLICE, QueuedSegments
from service.calls.text_worker import Read, Result, Text, TextWorker
from service.calls.window import Window
from service.options import RequestOptions
from service.queue.reservation import Reservation
from service.registry.catalog import ServedModel
from service.segment import Segment
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.document import Document
from service.text.pair import Pair
from service.text.result import TextResult


class Call:
    """The texts of one call, numbered as they come; lives on the event loop.

    :meth:`add` takes all texts of a call, or :meth:`feed` some after the other. Then its handler awaits :meth:`done`
    once or :meth:`moved` again and again, and :meth:`results` gives the translations; all in an `async with` block of
    the call, whose end withdraws what is unfinished. A text on which the engine fails has that error for its result;
    every other error of a segment ends the call.

    Attributes:
        count: texts that have come so far: the number of the next one.
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
        pipeline = model.in_memory()
        self._options = options
        self._translator = pipeline.translator
        self._intake = pipeline.intake
        self._model_name = model.manifest.name
        self._worker = worker
        self._metrics = metrics
        self._record = record
        self._window = window
        self._segments = QueuedSegments(pipeline.intake, metrics, record)
        self._texts = OpenTexts()
        self.count = 0
        self._wake_up = asyncio.Event()
        self._forgotten = asyncio.Event()
        self._feeding: asyncio.Task[None] | None = None
        self._reservations: ExitStack | None = None

    @property
    def held(self) -> int:
        """Texts that have come and were not forgotten."""
        return len(self._texts)

    async def add(self, contents: Sequence[str]) -> None:
        """Take all texts of the call: queue the segments of all or none where they are small, else begin to.

        Raises:
            QueueFullError: the queue has no room for them (OverloadedError: within the delay promised).
            DeadlineUnreachableError: it would be late.
            InvalidRequestError: a text is bad, and all or nothing is wanted.
            DragomanError: the model takes no segments any more.
        """
        self._let_in(await self._open(contents))

    async def add_pairs(self, pairs: Sequence[Pair]) -> None:
        """Take all texts of a call that has their translations scored; as :meth:`add`, which raises the same."""
        self.count = len(pairs)
        self._let_in(self._worker.open_pairs(self._translator, self._options, pairs, self._progress))

    def _let_in(self, texts: Mapping[int, Text]) -> None:
        documents = [text for text in texts.values() if not isinstance(text, DragomanError)]
        text_bytes = sum([document.text_bytes for document in documents])
        if self._options.has_tags:  # how much of them is text has shown only now
            self._intake.precheck(self._options, text_bytes)
        if self._options.all_or_nothing and len(documents) < len(texts):
            refuse_any([text for text in texts.values() if isinstance(text, DragomanError)])
        if False not in [document.complete for document in documents]:
            self._segments.submit(self._texts.take(texts))
            self._record.admitted = True
            if self._texts.finished:
                self._wake_up.set()
        else:
            self._reservations = ExitStack()
            reservation = self._reservations.enter_context(self._intake.reserve(self._options, text_bytes))
            self._expect(texts)
            self._feeding = asyncio.create_task(self._feed(texts, reservation))
            self._feeding.add_done_callback(self._note_fed)

    async def feed(self, contents: Sequence[str]) -> None:
        """Take more texts, read them and queue their segments, as there is room in the window and in the queue.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed meanwhile.
        """
        assert self._window is not None
        rest = list(contents)
        while rest:
            if sizes := self._window.fitting(rest, len(self._texts), self._texts.held_bytes):
                texts = await self._open(rest[: len(sizes)])
                self._expect(texts, sizes)
                await self._feed(texts, None)
                del rest[: len(sizes)]
            else:
                self._forgotten.clear()
                await self._forgotten.wait()

    async def done(self) -> None:
        """Wait until all texts have been read to their ends, and all segments have ended.

        Raises:
            DragomanError: a segment failed.
        """
        segments, texts = self._segments, self._texts
        while segments.unfinished or texts.unread:
            await self._wake_up.wait()
            self._wake_up.clear()
            if segments.error is not None:
                break
        segments.check()

    async def moved(self) -> set[int]:
        """Wait for progress, and say which texts have new tokens or finished segments.

        Raises:
            DragomanError: a segment failed.
        """
        await self._wake_up.wait()
        self._wake_up.clear()
        self._segments.check()
        moved, self._texts.moved = self._texts.moved, set()
        return moved

    def wake(self) -> None:
        """Let the handler look around, with or without news."""
        self._wake_up.set()

    def finished(self, number: int) -> bool:
        """Tell whether a text has been read to its end, and all its segments have ended."""
        return number in self._texts.finished

    def ready(self, *, in_order: bool) -> list[int]:
        """List the texts that are finished and were not forgotten; in order: those before the first that is not."""
        return self._texts.ready(in_order=in_order)

    def delta(self, number: int) -> str:
        """Hand out the translation of a text that is new and can no longer change; "" if there is none yet."""
        content = self._texts.content(number)
        return "" if isinstance(content, DragomanError) else content.grow()

    async def results(self, numbers: Iterable[int]) -> dict[int, Result]:
        """Put the translations of finished texts together; gives each, or its error, by its number."""
        texts = {number: self._texts.content(number) for number in numbers}
        results = await self._worker.results(self._options.client, texts)
        for result in results.values():
            if not isinstance(result, TextResult):
                continue
            if result.term_segments:
                metrics = self._metrics.of(self._model_name)
                metrics.glossary_segments_total.inc(result.term_segments)
                metrics.glossary_misses_total.inc(len(result.glossary_misses))
            for quality in result.segment_qualities:
                self._metrics.of(self._model_name).quality_estimate.observe(quality.estimate)
        return results

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of texts that are finished and answered: there is room for others."""
        self._texts.forget(numbers)
        self._forgotten.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Withdraw what is unfinished, slice by slice; nothing happens where nothing is."""
        cancelled: asyncio.CancelledError | None = None
        if self._feeding is not None:
            self._feeding.cancel()
        if self._reservations is not None:
            self._reservations.close()
        while self._segments.unfinished and (part := self._texts.pop_unfinished(SLICE)):
            self._segments.withdraw(part)
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:  # by the deadline and by the client, say: the rest goes, too
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _open(self, contents: Sequence[str]) -> dict[int, Text]:
        """Make documents of texts, which get the next numbers."""
        first = self.count
        self.count += len(contents)
        return await self._worker.open(self._translator, self._options, contents, first, self._progress)

    def _expect(self, texts: Mapping[int, Text], sizes: Sequence[int] = ()) -> None:
        self._record.admitted = True
        self._texts.expect(texts, sizes)

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
            if isinstance(self._texts.content(number), DragomanError):  # it has failed meanwhile
                unread.popleft()
                self._close(number)
                continue
            await self._segments.await_window()
            await self._queue(await self._worker.read(self._options.client, unread), reservation)
            document.settle(SLICE)  # its segments are let go as they end
        if reservation is not None:
            reservation.text_bytes = 0

    async def _queue(self, portion: Sequence[Read], reservation: Reservation | None) -> None:
        """Queue the segments of a portion, as soon as there is room."""
        together: list[Segment] = []
        for number, segments, _, error in portion:
            if error is not None:
                self._fail_text(number, error)
            if not isinstance(self._texts.content(number), DragomanError):
                self._take_up(number, segments)
                together += segments
        await self._segments.enter(together, reservation)
        for number, _, last, _ in portion:
            if last:
                self._close(number)

    def _take_up(self, number: int, segments: Sequence[Segment]) -> None:
        self._texts.take_up(number, segments)
        self._segments.take_up(segments)

    def _close(self, number: int) -> None:
        """Note that a text has no further segments."""
        if self._texts.close(number):
            self._wake_up.set()

    def _progress(self, number: int, segment: Segment) -> None:
        """Note that a segment of a text has a new token or has ended."""
        finished = False
        if self._texts.note(number, segment):
            self._segments.note_end(segment)
            if (error := segment.error) is not None:
                self._note_failed(number, error)
            finished = self._texts.check(number)
        one_by_one = finished and self._window is not None
        ended = not (self._texts.unread or self._segments.unfinished)
        if ended or one_by_one or segment.options.wants_deltas or self._segments.error:
            self._wake_up.set()

    def _note_failed(self, number: int, error: DragomanError) -> None:
        """Note that a segment of a text has failed."""
        if isinstance(error, TextFailedError):
            self._fail_text(number, error)
        else:
            self._end_with(error)

    def _fail_text(self, number: int, error: DragomanError) -> None:
        """Put an error in the place of a text, or end the call with it where all or nothing is wanted."""
        if self._options.all_or_nothing:
            self._end_with(error)
            return
        self._segments.withdraw(self._texts.fail(number, error))

    def _note_fed(self, feeding: "asyncio.Task[None]") -> None:
        if not feeding.cancelled() and (error := feeding.exception()) is not None:
            self._end_with(error)

    def _end_with(self, error: BaseException) -> None:
        self._segments.fail(error)
        self._wake_up.set()
