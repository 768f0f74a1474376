"""Takes the segments of calls for one model; lives on the event loop.

What is known is answered, what is on its way is shared, the rest is submitted.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence

from dragoman.errors import DeadlineExceededError, DragomanError
from service.decode import Decode, DecodeStatus
from service.queue.mailbox import Mailbox, notify
from service.queue.result_cache import Key, Result, ResultCache, engine_s
from service.queue.single_flight import SharedDecode, SingleFlight
from service.segment import Origin, Segment
from service.telemetry.metrics import ModelMetrics


class Intake:
    """Stands before a mailbox, which sees no segment: only decodes, each of which lives while a segment waits for it.

    Errors go to all who wait, and are forgotten.

    Attributes:
        admission: of the mailbox; calls ask it first.
    """

    def __init__(self, mailbox: Mailbox, metrics: ModelMetrics, *, limit_bytes: int, coalesce: bool) -> None:
        """Make it, on any thread; all else happens on the event loop to which the mailbox is bound.

        Args:
            limit_bytes: what kept results may take, keys and books counted; 0: none is kept.
            coalesce: whether identical segments are decoded once.
        """
        self.admission = mailbox.admission
        self._mailbox = mailbox
        self._metrics = metrics
        self._results = ResultCache(limit_bytes, metrics)
        self._decodes = SingleFlight(coalesce=coalesce)

    @property
    def results_bytes(self) -> int:
        """Bytes of the results that are kept."""
        return self._results.size_bytes

    @property
    def unfinished(self) -> int:
        """Decodes for which segments wait."""
        return len(self._decodes)

    def submit(self, segments: Sequence[Segment], *, let_in: bool = False) -> None:
        """Take all segments, or none; nobody is told of progress before this returns.

        Args:
            segments: of one client and priority.
            let_in: whether their call has been let in already: then they need room only in the queue as it is.

        Raises:
            QueueFullError: the mailbox has no room for those that nobody decodes yet.
            DrainingError: the mailbox is closed.
            DragomanError: the engine has failed.
        """
        known: list[tuple[Segment, Result]] = []
        joining: list[tuple[Segment, SharedDecode]] = []
        new: list[SharedDecode] = []
        joinable: dict[Key, SharedDecode] = {}  # of the new ones
        for segment in segments:
            key = Key.of(segment)
            if (result := self._results.find(key)) is not None:
                known.append((segment, result))
                continue
            shared = self._decodes.find(key) or joinable.get(key)
            if shared is not None:
                segment.origin = Origin.COALESCED
            else:
                shared = SharedDecode(key, segment.new_decode(self._progressed))
                new.append(shared)
                if self._decodes.coalesce:
                    joinable[key] = shared
            joining.append((segment, shared))
        if new:
            self._launch(new, let_in=let_in)
        # What can fail has not: from here on the segments are ours.
        if len(joining) > len(new):
            self._promote(joining)
            self._metrics.coalesced_segments_total.inc(len(joining) - len(new))
        now_s = time.monotonic()
        for segment in segments:
            segment.submitted_s = now_s
        for segment, shared in joining:
            self._decodes.join(segment, shared)
        if known:
            self._answer(known, now_s)
        self._results.count([result for _, result in known], [shared.key for shared in new])

    def cancel(self, segments: Iterable[Segment]) -> None:
        """Withdraw segments: `on_progress` is not called for them any more; a decode goes on while others wait."""
        segments = list(segments)
        for segment in segments:
            segment.cancel_requested = True  # keeps the news of its end, if that is on its way, from the caller
        abandoned = self._decodes.leave(segments, time.monotonic())
        if abandoned:
            self._mailbox.cancel(abandoned)

    def clear(self) -> None:
        """Forget all results."""
        self._results.clear()

    def _launch(self, new: Sequence[SharedDecode], *, let_in: bool = False, again: bool = False) -> None:
        self._mailbox.submit([shared.decode for shared in new], let_in=let_in, again=again)
        for shared in new:
            self._decodes.add(shared)

    def _promote(self, joining: Iterable[tuple[Segment, SharedDecode]]) -> None:
        """Have decodes that wait take the turns of the segments that join them, where these come sooner."""
        for segment, shared in joining:
            decode, options = shared.decode, segment.options
            same = options.client == decode.client and options.priority >= decode.priority
            if decode.status is DecodeStatus.WAITING and not same:
                self._mailbox.promote(decode, options.client, options.priority)

    def _answer(self, known: Sequence[tuple[Segment, Result]], now_s: float) -> None:
        """Finish segments whose results are here; their callers are told later, when they are ready to listen."""
        for segment, result in known:
            segment.origin, segment.finished = Origin.CACHED, True
            segment.decode = result.decode(segment, now_s)
        asyncio.get_running_loop().call_soon(notify, [segment for segment, _ in known])

    def _progressed(self, decode: Decode) -> None:
        """Pass on the news of a decode."""
        shared = self._decodes.of(decode)
        if shared is None:
            return  # its end already showed when a token of it was told
        if decode.finished:
            self._end(shared)
        else:
            notify([segment for segment in shared.segments if segment.options.wants_deltas])

    def _end(self, shared: SharedDecode) -> None:
        """Tell all who waited of the end; but a passed deadline may not be theirs."""
        segments, late = list(shared.segments), []
        self._decodes.remove(shared)
        if isinstance(shared.decode.error, DeadlineExceededError):
            now_s = time.monotonic()
            late = [segment for segment in segments if _has_time(segment, now_s)]
            segments = [segment for segment in segments if not _has_time(segment, now_s)]
        self._results.keep(shared.key, shared.decode)
        if len(segments) > 1 and shared.decode.error is None:
            self._metrics.coalesced_saved_seconds_total.inc((len(segments) - 1) * engine_s(shared.decode))
        if late:
            self._relaunch(shared.key, late)
        _tell_end(segments)

    def _relaunch(self, key: Key, segments: Sequence[Segment]) -> None:
        """Begin again for those who joined just as the engine gave up, and have time left."""
        shared = SharedDecode(key, segments[0].new_decode(self._progressed))
        try:
            self._launch([shared], again=True)
        except DragomanError as error:
            shared.decode.fail(error, time.monotonic())
            for segment in segments:
                segment.decode = shared.decode
            _tell_end(segments)
        else:
            for segment in segments:
                self._decodes.join(segment, shared)


def _tell_end(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.finished = True
    notify(segments)


def _has_time(segment: Segment, now_s: float) -> bool:
    deadline_s = segment.options.deadline_s
    return deadline_s is None or deadline_s > now_s
