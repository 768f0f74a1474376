"""Takes the segments of calls for one model; lives on the event loop.

What is known is answered, what is on its way is shared, the rest is submitted.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from dragoman.errors import DeadlineExceededError, DragomanError
from service.decode import Decode, DecodeStatus, notify
from service.options import RequestOptions
from service.queue.mailbox import Mailbox
from service.queue.result_cache import Key, Result, ResultCache
from service.segment import Origin, Segment
from service.telemetry.metrics import ModelMetrics


class SharedDecode:
    """A decode in the mailbox, and the segments that wait for it.

    It has the latest deadline of theirs. Each call ends at its own deadline by itself, and withdraws its segments.

    Attributes:
        key: of its result.
        decode: it itself.
        segments: that wait, in order of arrival; each with the decode of its own, which it would have without them.
    """

    __slots__ = ("_deadlines", "_wanting_deltas", "decode", "key", "segments")

    def __init__(self, key: Key, segment: Segment, on_progress: Callable[[Decode], None]) -> None:
        """Take the decode of a segment, which has not joined yet, and have it wait in the turn of its client."""
        options = segment.options
        self.key = key
        self.decode = decode = segment.decode
        decode.client, decode.priority = options.client, options.priority
        decode.deadline_s, decode.wants_deltas = options.deadline_s, options.wants_deltas
        decode.on_progress = on_progress
        self.segments: dict[Segment, Decode] = {}
        # How many of them have each deadline: the segments of one call have the same.
        self._deadlines: Counter[float | None] = Counter()
        self._wanting_deltas = 0

    def join(self, segment: Segment) -> None:
        """Have a segment wait for it, too."""
        decode, options = self.decode, segment.options
        if self.segments:
            segment.origin = Origin.COALESCED
        if decode.deadline_s != options.deadline_s:
            decode.deadline_s = _later(decode.deadline_s, options.deadline_s)
        decode.wants_deltas |= options.wants_deltas
        self.segments[segment], segment.decode = segment.decode, decode
        self._deadlines[options.deadline_s] += 1
        self._wanting_deltas += options.wants_deltas

    def leave(self, segment: Segment, now_s: float) -> None:
        """End a segment that waits, in the same time however many do; `trim` is for when all have left who do."""
        options = segment.options
        del self.segments[segment]
        self._wanting_deltas -= options.wants_deltas
        self._deadlines[options.deadline_s] -= 1
        if not self._deadlines[options.deadline_s]:
            del self._deadlines[options.deadline_s]
        segment.leave(now_s)

    def trim(self) -> None:
        """Ask for no more, now that some have left, than those who stay do."""
        self.decode.wants_deltas = self._wanting_deltas > 0
        if self.decode.deadline_s not in self._deadlines:
            # Computed first and set at once: an engine thread reads it.
            self.decode.deadline_s = reduce(_later, self._deadlines)


class Intake:
    """Stands before a mailbox, which sees no segment: only decodes, each of which lives while a segment waits for it.

    Errors go to all who wait, and are forgotten.

    Attributes:
        admission: of the mailbox; calls ask it first.
        results: that are known.
    """

    def __init__(self, mailbox: Mailbox, metrics: ModelMetrics, *, limit_bytes: int, coalesce: bool) -> None:
        """Make it, on any thread; all else happens on the event loop to which the mailbox is bound.

        Args:
            limit_bytes: what kept results may take, keys and books counted; 0: none is kept.
            coalesce: whether identical segments are decoded once.
        """
        self.admission = mailbox.admission
        self.results = ResultCache(limit_bytes, metrics)
        self._mailbox = mailbox
        self._metrics = metrics
        self._coalesce = coalesce
        # Those that have not ended, by themselves and, where others may join, by what they give.
        self._shared: dict[Decode, SharedDecode] = {}
        self._joinable: dict[Key, SharedDecode] = {}

    @property
    def unfinished(self) -> int:
        """Decodes for which segments wait."""
        return len(self._shared)

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
        waiting: list[tuple[Segment, SharedDecode]] = []
        new: list[SharedDecode] = []
        joinable: dict[Key, SharedDecode] = {}  # of the new ones
        for segment in segments:
            key = Key.of(segment.decode)
            if (result := self.results.get(key)) is not None:
                known.append((segment, result))
                continue
            shared = self._joinable.get(key) or joinable.get(key)
            if shared is None:
                shared = SharedDecode(key, segment, self._progressed)
                new.append(shared)
                if self._coalesce:
                    joinable[key] = shared
            waiting.append((segment, shared))
        if new:
            self._mailbox.submit([shared.decode for shared in new], let_in=let_in)
        # What can fail has not: from here on the segments are ours.
        self._shared |= {shared.decode: shared for shared in new}
        self._joinable |= joinable
        now_s = time.monotonic()
        for segment in segments:
            segment.submitted_s = now_s
        for segment, shared in waiting:
            if shared.segments:
                self._promote(shared.decode, segment.options)
            shared.join(segment)
        if len(waiting) > len(new):
            self._metrics.coalesced_segments_total.inc(len(waiting) - len(new))
        if known:
            self._answer(known, now_s)
        self.results.count([result for _, result in known], [shared.key for shared in new])

    def cancel(self, segments: Iterable[Segment]) -> None:
        """Withdraw segments: `on_progress` is not called for them any more; a decode goes on while others wait."""
        now_s = time.monotonic()
        left: dict[SharedDecode, None] = {}
        for segment in segments:
            segment.cancel_requested = True  # keeps the news of its end, if that is on its way, from the caller
            shared = self._shared.get(segment.decode)
            if shared is not None:
                shared.leave(segment, now_s)
                left[shared] = None
        abandoned = []
        for shared in left:
            if shared.segments:
                shared.trim()
            else:
                self._forget(shared)
                abandoned.append(shared.decode)
        if abandoned:
            self._mailbox.cancel(abandoned)

    def _promote(self, decode: Decode, options: RequestOptions) -> None:
        """Have a decode that waits take the turn of one who joins, where that comes sooner."""
        same = options.client == decode.client and options.priority >= decode.priority
        if decode.status is DecodeStatus.WAITING and not same:
            self._mailbox.promote(decode, options.client, options.priority)

    def _answer(self, known: Sequence[tuple[Segment, Result]], now_s: float) -> None:
        """Finish segments whose results are here; their callers are told later, when they are ready to listen."""
        for segment, result in known:
            result.end(segment.decode, now_s)
            segment.origin, segment.finished = Origin.CACHED, True
        asyncio.get_running_loop().call_soon(notify, [segment for segment, _ in known])

    def _progressed(self, decode: Decode) -> None:
        """Pass on the news of a decode; of its end to all who waited, but a passed deadline may not be theirs."""
        shared = self._shared.get(decode)
        if shared is None:
            return  # its end already showed when a token of it was told
        if not decode.finished:
            notify([segment for segment in shared.segments if segment.options.wants_deltas])
            return
        self._forget(shared)
        late: dict[Segment, Decode] = {}
        if isinstance(decode.error, DeadlineExceededError):
            now_s = time.monotonic()
            late = {segment: own for segment, own in shared.segments.items() if _has_time(segment, now_s)}
        segments = [segment for segment in shared.segments if segment not in late]
        self.results.keep(shared.key, decode)
        if len(segments) > 1 and decode.error is None:
            self._metrics.coalesced_saved_seconds_total.inc((len(segments) - 1) * decode.engine_s)
        if late:
            self._relaunch(shared.key, late)
        _tell_end(segments)

    def _relaunch(self, key: Key, late: Mapping[Segment, Decode]) -> None:
        """Begin again for those who joined just as the engine gave up, and have time left, with a decode of theirs."""
        for segment, own in late.items():
            segment.decode = own
        shared = SharedDecode(key, next(iter(late)), self._progressed)
        try:
            self._mailbox.submit([shared.decode], again=True)
        except DragomanError as error:
            shared.decode.fail(error, time.monotonic())
            for segment in late:
                segment.decode = shared.decode
            _tell_end(list(late))
            return
        self._shared[shared.decode] = shared
        if self._coalesce:
            self._joinable[key] = shared
        for segment in late:
            shared.join(segment)

    def _forget(self, shared: SharedDecode) -> None:
        """Let nobody join a decode any more, and hear nothing of it."""
        del self._shared[shared.decode]
        self._joinable.pop(shared.key, None)  # none where identical segments are decoded each


def _tell_end(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.finished = True
    notify(segments)


def _has_time(segment: Segment, now_s: float) -> bool:
    deadline_s = segment.options.deadline_s
    return deadline_s is None or deadline_s > now_s


def _later(first_s: float | None, second_s: float | None) -> float | None:
    """Give the later of two times, where None is never."""
    return None if first_s is None or second_s is None else max(first_s, second_s)
