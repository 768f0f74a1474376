"""The segments of one call that are unfinished: into the queue as there is room, and out of it again."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from dragoman.errors import QueueFullError
from service.queue.intake import Intake
from service.queue.reservation import Reservation
from service.segment import Segment
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics

# Submitting or withdrawing this number of segments takes a millisecond of the event loop; then others have their turn.
SLICE: Final = 128
# Segments of one call that wait or are decoded. It bounds the memory that a call takes, and what its end costs.
_WINDOW: Final = 1_024
# Between two tries to get into a full queue, whatever it said.
_SHORTEST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0


class QueuedSegments:
    """Queues the segments of one call, withdraws them, and enters the end of each in the record of the call.

    Attributes:
        unfinished: how many were taken up and have not ended.
        error: what ends the call; None: nothing so far.
    """

    def __init__(self, intake: Intake, metrics: Metrics, record: CallStats) -> None:
        """Make a call without segments.

        Args:
            intake: where they go.
            metrics: of the server.
            record: of the call.
        """
        self.unfinished = 0
        self.error: BaseException | None = None
        self._intake = intake
        self._metrics = metrics
        self._record = record
        self._news = asyncio.Event()  # set when a segment ends

    def submit(self, segments: Sequence[Segment]) -> None:
        """Queue and count all segments, or none.

        Raises:
            QueueFullError: the queue has no room for them.
            DrainingError: the server is shutting down.
            DragomanError: the engine has failed.
        """
        if segments:
            self._intake.submit(segments)
            self.unfinished += len(segments)
            self._record.segments += len(segments)

    async def enter(self, segments: Sequence[Segment], reservation: Reservation | None) -> None:
        """Queue segments that were taken up, slice by slice, as soon as there is room.

        Args:
            segments: of a call that has been let in; those that were withdrawn meanwhile stay away.
            reservation: of their text; None: there is none.

        Raises:
            DrainingError: the server is shutting down.
            DragomanError: the call has failed meanwhile.
        """
        rest = list(segments)
        while rest:
            part = _first_of(rest, self._intake.portion_source_tokens)
            await self._enter(part)
            del rest[: len(part)]
            if reservation is not None:
                reservation.text_bytes -= sum([segment.text_bytes for segment in part])

    async def await_window(self) -> None:
        """Wait while the call has all the segments on their way that it may have.

        Raises:
            DragomanError: the call has failed meanwhile.
        """
        while self.unfinished >= _WINDOW:
            await self._wait()

    def take_up(self, segments: Sequence[Segment]) -> None:
        """Count segments that were submitted, or are about to be."""
        self.unfinished += len(segments)
        self._record.segments += len(segments)

    def note_end(self, segment: Segment) -> None:
        """Count a segment that has ended."""
        self.unfinished -= 1
        self._news.set()
        self._record.note(segment)
        if (first_token_s := segment.first_token_s) is not None and segment.submitted_s is not None:
            self._metrics.time_to_first_token_seconds.observe(first_token_s - segment.submitted_s)

    def withdraw(self, segments: Sequence[Segment]) -> None:
        """Take back segments that have not ended."""
        if not segments:
            return
        self.unfinished -= len(segments)
        # Counted first: once slots are seen to be free, so is the count.
        self._metrics.cancelled_segments_total.inc(len(segments))
        self._intake.cancel(segments)
        for segment in segments:
            self._record.note(segment)

    def fail(self, error: BaseException) -> None:
        """End the call with an error, if it has none yet."""
        self.error = self.error or error
        self._news.set()

    def check(self) -> None:
        """Raise the error of the call, if it has one."""
        if self.error is not None:
            raise self.error

    async def _enter(self, segments: Sequence[Segment]) -> None:
        while True:
            self.check()
            try:
                self._intake.submit([segment for segment in segments if not segment.cancel_requested], let_in=True)
            except QueueFullError as error:
                pause_s = min(max(error.retry_delay_s or 0.0, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wait()
            else:
                return

    async def _wait(self) -> None:
        """Wait until a segment ends."""
        self._news.clear()
        await self._news.wait()
        self.check()


def _first_of(segments: Sequence[Segment], source_tokens: int) -> list[Segment]:
    """Choose the first segments, as many as may be submitted at once: at least one."""
    part: list[Segment] = []
    for segment in segments[:SLICE]:
        source_tokens -= segment.cost
        if part and source_tokens < 0:
            break
        part.append(segment)
    return part
