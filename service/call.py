"""One admitted call while the engine works on it; lives on the event loop."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, Self

from dragoman.errors import DragomanError, TextFailedError
from service.catalog import Intake
from service.metrics import Metrics
from service.record import Record
from service.request import Segment
from service.translator import Document

# One text of a call: on its way, or the error that stands in place of its translation.
Text = Document | DragomanError

# So many segments take a millisecond of the event loop, to submit or to withdraw; then others have their turn.
_SLICE: Final = 128


class Call:
    """The texts of one call, what of them is unfinished, and a wake-up for the handler that waits.

    Its handler gives :meth:`progress` to the segments of each document, submits the texts, and
    awaits :meth:`complete` once or :meth:`moved` again and again, all in an `async with` block of the call. A text on
    which the engine fails has that error in place of its outcome; every other error of a segment ends the call.
    """

    def __init__(
        self,
        intake: Intake,
        metrics: Metrics,
        record: Record,
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
        self._left = 0  # unfinished segments of all texts
        self._moved: set[int] = set()
        self._wake_up = asyncio.Event()
        self._error: DragomanError | None = None

    async def submit(self, texts: Mapping[int, Text]) -> None:
        """Queue the segments of all these texts, or of none; may be called again, with others.

        Many are queued slice by slice, once all have been let in.

        Raises:
            QueueFullError: the queue has no room for them.
            DrainingError: the server is shutting down.
            DragomanError: a segment failed meanwhile.
        """
        segments = {index: [] if isinstance(text, DragomanError) else text.segments for index, text in texts.items()}
        together = [segment for group in segments.values() for segment in group]
        if len(together) > _SLICE:
            with self._intake.promised(together) as promise:
                self._expect(texts, segments)
                for start in range(0, len(together), _SLICE):
                    part = together[start : start + _SLICE]
                    self._intake.submit([segment for segment in part if not segment.cancel_requested], promise)
                    await asyncio.sleep(0)
                    self._check()
            return
        if together:
            self._intake.submit(together)
        self._expect(texts, segments)

    def progress(self, index: int, segment: Segment) -> None:
        """Note that a segment of text `index` has a new token or is finished."""
        self._moved.add(index)
        unfinished = self._unfinished[index]
        if segment.finished and unfinished.pop(id(segment), None) is not None:
            self._left -= 1
            self._observe(segment)
            if segment.error is not None:
                self._segment_failed(index, segment.error)
            if not unfinished:
                self._finish(index)
        if segment.wants_deltas or self._error or not self._left:
            self._wake_up.set()

    def wake(self) -> None:
        """Let the handler look around, with or without news."""
        self._wake_up.set()

    def finished(self, index: int) -> bool:
        """Whether all segments of a text are finished."""
        return not self._unfinished[index]

    def text(self, index: int) -> Text:
        """A text: its document, or its error."""
        return self._texts[index]

    def forget(self, index: int) -> None:
        """Let go of a text that is finished and answered."""
        del self._texts[index], self._unfinished[index]

    async def complete(self) -> None:
        """Wait until all segments are finished.

        Raises:
            DragomanError: a segment failed.
        """
        while self._left:
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
        while part := self._pop_unfinished(_SLICE):
            self._withdraw(part)
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:  # by the deadline and by the client, say: the rest goes, too
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def _expect(self, texts: Mapping[int, Text], segments: Mapping[int, Sequence[Segment]]) -> None:
        """Take texts up whose segments are let in."""
        self._record.admitted = True
        for index, group in segments.items():
            self._texts[index] = texts[index]
            self._unfinished[index] = {id(segment): segment for segment in group}
            if not group:
                self._finish(index)
            self._left += len(group)
            self._record.segments += len(group)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _pop_unfinished(self, count: int) -> list[Segment]:
        """Forget unfinished segments, so many at most."""
        unfinished = ((group, key) for group in self._unfinished.values() for key in group)
        return [group.pop(key) for group, key in list(islice(unfinished, count))]

    def _segment_failed(self, index: int, error: DragomanError) -> None:
        if self._all_or_nothing or not isinstance(error, TextFailedError):
            self._error = self._error or error
            return
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
