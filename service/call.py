"""One admitted call while the engine works on it; lives on the event loop."""

import asyncio
from collections.abc import Sequence

from dragoman.errors import DragomanError
from service.catalog import Intake
from service.metrics import Metrics
from service.request import Segment
from service.translator import Document


class Call:
    """The documents of one call, what of them is unfinished, and a wake-up for the handler that waits.

    Its handler gives :meth:`progress` to the segments of each document, submits the documents, awaits
    :meth:`complete` once or :meth:`moved` again and again, and at its end, however that comes, cancels.
    """

    def __init__(self, intake: Intake, metrics: Metrics) -> None:
        self.documents: list[Document] = []
        self._intake = intake
        self._metrics = metrics
        self._unfinished: list[dict[int, Segment]] = []  # of each document, by identity
        self._left = 0  # unfinished segments of all documents
        self._moved: set[int] = set()
        self._wake_up = asyncio.Event()
        self._error: DragomanError | None = None

    def submit(self, documents: Sequence[Document]) -> None:
        """Queue all segments, or none.

        Raises:
            QueueFullError: the queue has no room for them.
            DrainingError: the server is shutting down.
        """
        self.documents = list(documents)
        segments = [segment for document in documents for segment in document.segments]
        if segments:
            self._intake.submit(segments)
        self._unfinished = [{id(segment): segment for segment in document.segments} for document in documents]
        self._left = len(segments)

    def progress(self, index: int, segment: Segment) -> None:
        """Note that a segment of document `index` has a new token or is finished."""
        self._moved.add(index)
        if segment.finished and self._unfinished[index].pop(id(segment), None) is not None:
            self._left -= 1
            self._observe(segment)
            if segment.error is not None:
                self._error = self._error or segment.error
        if segment.wants_deltas or self._error or not self._left:
            self._wake_up.set()

    def fail(self, error: DragomanError) -> None:
        """End the call with an error, whatever its segments do."""
        self._error = self._error or error
        self._wake_up.set()

    def finished(self, index: int) -> bool:
        """Whether all segments of a document are finished."""
        return not self._unfinished[index]

    async def complete(self) -> None:
        """Wait until all segments are finished.

        Raises:
            DragomanError: a segment failed, or the call did.
        """
        while self._left:
            await self.moved()

    async def moved(self) -> set[int]:
        """Wait for progress, and say which documents have new tokens or finished segments.

        Raises:
            DragomanError: a segment failed, or the call did.
        """
        await self._wake_up.wait()
        self._wake_up.clear()
        if self._error is not None:
            raise self._error
        moved, self._moved = self._moved, set()
        return moved

    def cancel(self) -> None:
        """Withdraw what is unfinished; nothing happens where nothing is."""
        left = [segment for unfinished in self._unfinished for segment in unfinished.values()]
        if left:
            # Counted first: once slots are seen to be free, so is the count.
            self._metrics.cancelled_segments_total.inc(len(left))
            self._intake.cancel(left)

    def _observe(self, segment: Segment) -> None:
        if segment.first_token_s is not None and segment.submitted_s is not None:
            self._metrics.time_to_first_token_seconds.observe(segment.first_token_s - segment.submitted_s)
