"""One admitted call while the engine works on it: its texts, from their contents to their results."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from dragoman.errors import DragomanError, TextFailedError
from service.calls.leg import Leg, both
from service.calls.limits import refuse_any
from service.calls.text_worker import HEAVY, Result, Text, TextWorker
from service.failures import told
from service.options import RequestOptions
from service.queue.intake import Intake
from service.segment import Segment
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics
from service.text.result import TextResult

# Submitting or withdrawing this number of segments takes a millisecond; then other calls have the event loop.
SLICE: Final = 128


@dataclass(slots=True, eq=False)
class OpenText:
    """One text of a call.

    Attributes:
        content: its document, or the error in its place.
        leg: the current leg of the text.
        unfinished: its segments that have not ended: a set in the order of the text.
        read: whether it has been read to its end.
        before: its result of the leg before; None: there was no leg before.
        unread_bytes: bytes in UTF-8 that no segment has so far, of a text that is read portion by portion; counts only
            on the first leg.
    """

    content: Text
    leg: Leg
    unfinished: dict[Segment, None]
    read: bool = True
    before: TextResult | None = None
    unread_bytes: int = 0


class Part(NamedTuple):
    """Texts of a call that have the same legs.

    Attributes:
        leg: the first leg.
        numbers: numbers of the texts; None: all texts.
    """

    leg: Leg
    numbers: Sequence[int] | None = None


class Call(AbstractAsyncContextManager["Call"]):
    """The texts of one call, numbered as they come; lives on the event loop.

    :meth:`add` takes all texts, which are small in total; no text is too large. Then the handler awaits :meth:`done`
    once for all translations; or it awaits :meth:`moved` repeatedly, and :meth:`results` for some translations. All of
    this is in an `async with` block of the call, whose end withdraws unfinished segments. A text is finished when it
    has been read to its end and all its segments have ended. If the engine fails on a text, that error is the result of
    the text; every other error of a segment ends the call.

    Attributes:
        count: number of texts that have come so far, and so the number of the next text.
    """

    def __init__(self, parts: Sequence[Part], worker: TextWorker, metrics: Metrics, record: CallStats) -> None:
        """Make a call without texts.

        Args:
            parts: of its texts, all with the options of one request; the caller holds their models as long as the call
                lasts.
        """
        self.count = 0
        self._parts = parts
        self._options = parts[0].leg.options if parts else RequestOptions()
        self._worker = worker
        self._metrics = metrics
        self._record = record
        self._texts: dict[int, OpenText] = {}  # in the order of their numbers
        self._unread = 0  # texts
        self._unfinished = 0  # segments
        self._finished: set[int] = set()
        self._moved: set[int] = set()
        self._error: BaseException | None = None
        self._wake_up = asyncio.Event()

    async def add(self, contents: Sequence[str]) -> None:
        """Take all texts of the call, and queue the segments of all or none.

        Raises:
            QueueFullError: the queue has no room for them (OverloadedError: none within the promised delay).
            DeadlineUnreachableError: the call would miss its deadline.
            InvalidRequestError: a text is bad, and all or nothing is wanted.
            DragomanError: the model takes no segments any more.
        """
        [(leg, _)] = self._parts
        self.count = len(contents)
        texts: dict[int, Text] = {}
        for number, text in enumerate(contents):
            progress, field = partial(self._progress, number), f"contents[{number}]"
            try:
                texts[number] = leg.pipeline.translator.prepare(text, leg.options, progress, field)
            except Exception as error:
                texts[number] = told(error)
        self._let_in(leg, texts)

    async def done(self) -> dict[int, Result]:
        """Wait until all texts have been read to their ends, and all segments have ended; give the texts' results.

        Raises:
            DragomanError: a segment failed; or a text did, and all or nothing is wanted.
        """
        while (self._unfinished or self._unread) and self._error is None:
            await self._wake_up.wait()
            self._wake_up.clear()
        if self._error is not None:
            raise self._error
        results = await self.results(range(self.count))
        errors = [result for result in results.values() if isinstance(result, DragomanError)]
        if errors and self._options.all_or_nothing:
            refuse_any(errors)
        self._record.failed_texts = len(errors)
        return results

    async def moved(self) -> set[int]:
        """Wait for progress, and say which texts have new tokens or finished segments.

        Raises:
            DragomanError: a segment failed.
        """
        await self._wake_up.wait()
        self._wake_up.clear()
        if self._error is not None:
            raise self._error
        moved, self._moved = self._moved, set()
        return moved

    def finished(self, number: int) -> bool:
        """Tell whether a text is finished."""
        return number in self._finished

    def delta(self, number: int) -> str:
        """Hand out the new part of a translation that can no longer change; "" if there is none yet."""
        content = self._texts[number].content
        return "" if isinstance(content, DragomanError) else content.grow()

    async def results(self, numbers: Iterable[int]) -> dict[int, Result]:
        """Put the translations of finished texts together; gives each, or its error, by its number."""
        texts = {number: self._texts[number].content for number in numbers}
        results: dict[int, Result] = {}
        if sum([1 if isinstance(text, DragomanError) else text.weight for text in texts.values()]) > HEAVY:
            results = await self._worker.results(self._options.client, texts)
        else:
            for number, text in texts.items():
                results[number] = text if isinstance(text, DragomanError) else text.outcome()
        for number, result in results.items():
            if not isinstance(result, TextResult):
                continue
            if (before := self._texts[number].before) is not None:
                results[number] = result = both(before, result)
            if result.term_segments:
                metrics = self._metrics.of(self._texts[number].leg.model_name)
                metrics.glossary_segments_total.inc(result.term_segments)
                metrics.glossary_misses_total.inc(len(result.glossary_misses))
            for quality in result.segment_qualities:
                self._metrics.of(self._texts[number].leg.model_name).quality_estimate.observe(quality.estimate)
        return results

    async def __aexit__(self, *_: object) -> None:
        """Withdraw unfinished segments, slice by slice."""
        cancelled: asyncio.CancelledError | None = None
        while self._unfinished and (some := self._pop_unfinished()):
            for intake, segments in some.items():
                self._withdraw(intake, segments)
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:  # perhaps several times: the rest is withdrawn all the same
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def _let_in(self, leg: Leg, texts: Mapping[int, Text]) -> None:
        documents = [text for text in texts.values() if not isinstance(text, DragomanError)]
        text_bytes = sum([document.text_bytes for document in documents])
        if leg.options.has_tags:  # the size of the texts without tags is known only now
            leg.pipeline.intake.admission.precheck(leg.options, text_bytes)
        if leg.options.all_or_nothing and len(documents) < len(texts):
            refuse_any([text for text in texts.values() if isinstance(text, DragomanError)])
        self._take(leg, texts, text_bytes)

    def _take(self, leg: Leg, texts: Mapping[int, Text], text_bytes: int) -> None:
        """Queue the segments of texts that were read to their ends: all segments or none."""
        segments: list[Segment] = []
        opened: dict[int, OpenText] = {}
        for number, text in texts.items():
            found = () if isinstance(text, DragomanError) else text.segments
            opened[number] = OpenText(text, leg, dict.fromkeys(found))
            segments += found
            if not found:
                self._finish(number)
        if segments:
            leg.pipeline.intake.submit(segments)
            self._unfinished += len(segments)
            self._record.segments += len(segments)
        self._texts |= opened
        self._record.admitted = True

    def _progress(self, number: int, segment: Segment) -> None:
        """Note that a segment of a text has a new token or has ended."""
        text = self._texts[number]
        self._moved.add(number)
        if segment.finished and segment in text.unfinished:
            del text.unfinished[segment]
            self._unfinished -= 1
            self._record.note(segment)
            first_s, since_s = segment.decode.first_token_s, segment.submitted_s
            if first_s is not None and since_s is not None:
                self._metrics.time_to_first_token_seconds.observe(max(0.0, first_s - since_s))  # decode may be shared
            error = segment.decode.error
            if isinstance(error, TextFailedError):
                self._fail_text(number, error)
            elif error is not None:
                self._end_with(error)
            if text.read and not text.unfinished:
                self._finished.add(number)
        if not (self._unread or self._unfinished) or segment.options.wants_deltas or self._error:
            self._wake_up.set()

    def _finish(self, number: int) -> None:
        self._moved.add(number)
        self._finished.add(number)
        self._wake_up.set()

    def _fail_text(self, number: int, error: DragomanError) -> None:
        """Put an error in the place of a text, or end the call with it where all or nothing is wanted."""
        text = self._texts[number]
        if text.leg.options.all_or_nothing:
            self._end_with(error)
            return
        text.content = error
        left = list(text.unfinished)
        text.unfinished.clear()
        self._withdraw(text.leg.pipeline.intake, left)

    def _withdraw(self, intake: Intake, segments: Sequence[Segment]) -> None:
        """Withdraw segments that have not ended."""
        if not segments:
            return
        self._unfinished -= len(segments)
        submitted = [segment for segment in segments if segment.submitted_s is not None]
        # Counted first: the count is there before the slots are free.
        self._metrics.cancelled_segments_total.inc(len(submitted))
        intake.cancel(segments)  # also those that wait for room: they are not submitted any more
        for segment in submitted:
            self._record.note(segment)

    def _pop_unfinished(self) -> dict[Intake, list[Segment]]:
        """Remove at most `SLICE` unfinished segments from their texts; gives them by intake."""
        unfinished = ((text, segment) for text in self._texts.values() for segment in text.unfinished)
        popped: dict[Intake, list[Segment]] = {}
        for text, segment in list(islice(unfinished, SLICE)):
            del text.unfinished[segment]
            popped.setdefault(text.leg.pipeline.intake, []).append(segment)
        return popped

    def _end_with(self, error: BaseException) -> None:
        """End the call with an error, if it has none yet."""
        self._error = self._error or error
        self._wake_up.set()
