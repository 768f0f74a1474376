"""Takes the segments of calls for one model; lives on the event loop.

A segment with a known result is answered; a segment equal to one in progress shares its decode; others are submitted.
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

    The decode has the latest deadline of its segments. Each call ends at its own deadline, and withdraws its segments.

    Attributes:
        key: key of its result.
        decode: the decode in the mailbox.
        segments: the waiting segments, in order of arrival; each with its own decode, for use without sharing.
    """

    __slots__ = ("_deadlines", "_wanting_deltas", "decode", "key", "segments")

    def __init__(self, key: Key, segment: Segment, on_progress: Callable[[Decode], None]) -> None:
        """Take the decode of a segment that has not joined yet; the decode waits for a turn of the segment's client."""
        options = segment.options
        self.key = key
        self.decode = decode = segment.decode
        decode.client, decode.priority = options.client, options.priority
        decode.deadline_s, decode.wants_deltas = options.deadline_s, options.wants_deltas
        decode.on_progress = on_progress
        self.segments: dict[Segment, Decode] = {}
        # The number of segments with each deadline: the segments of one call have the same deadline.
        self._deadlines: Counter[float | None] = Counter()
        self._wanting_deltas = 0

    def join(self, segment: Segment) -> None:
        """Make a segment wait for the decode, too."""
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
        """End a waiting segment, in constant time; `trim` has to follow once all leaving segments have left."""
        options = segment.options
        del self.segments[segment]
        self._wanting_deltas -= options.wants_deltas
        self._deadlines[options.deadline_s] -= 1
        if not self._deadlines[options.deadline_s]:
            del self._deadlines[options.deadline_s]
        segment.leave(now_s)

    def trim(self) -> None:
        """Reduce the deadline and the deltas of the decode to the needs of the remaining segments."""
        self.decode.wants_deltas = self._wanting_deltas > 0
        if self.decode.deadline_s not in self._deadlines:
            # Computed first and set at once: an engine thread reads it.
            self.decode.deadline_s = reduce(_later, self._deadlines)


class Intake:
    """Stands before a mailbox, which sees only decodes, no segments. A decode lives while a segment waits for it.

    An error goes to all waiting segments, and is not kept.

    Attributes:
        admission: admission of the mailbox; calls ask it first.
        results: cache of the known results.
    """

    def __init__(self, mailbox: Mailbox, metrics: ModelMetrics, *, limit_bytes: int, coalesce: bool) -> None:
        """Make an intake, on any thread; all other methods run on the event loop to which the mailbox is bound.

        Args:
            limit_bytes: limit of the memory of results, keys and overhead included; 0: none is kept.
            coalesce: whether identical segments are decoded once.
        """
        self.admission = mailbox.admission
        self.results = ResultCache(limit_bytes, metrics)
        self._mailbox = mailbox
        self._metrics = metrics
        self._coalesce = coalesce
        # Decodes that have not ended: by decode and, where segments may join, by the key of the result.
        self._shared: dict[Decode, SharedDecode] = {}
        self._joinable: dict[Key, SharedDecode] = {}

    @property
    def unfinished(self) -> int:
        """Number of decodes for which segments wait."""
        return len(self._shared)

    def submit(self, segments: Sequence[Segment], *, let_in: bool = False) -> None:
        """Take all segments, or none; `on_progress` is not called before this returns.

        Args:
            segments: segments of one client and priority.
            let_in: whether their call was admitted before: then the reservations of calls do not count.

        Raises:
            QueueFullError: the mailbox has no room for the segments that need a new decode.
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
        # Nothing below fails: from here on, the intake has the segments.
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
        """Withdraw segments: `on_progress` is called for them no more; a decode goes on while other segments wait."""
        now_s = time.monotonic()
        left: dict[SharedDecode, None] = {}
        for segment in segments:
            segment.cancel_requested = True  # the caller is not told of an end that is already on its way
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
        """Move a waiting decode to the turn of a joining segment's client, where that turn comes sooner."""
        same = options.client == decode.client and options.priority >= decode.priority
        if decode.status is DecodeStatus.WAITING and not same:
            self._mailbox.promote(decode, options.client, options.priority)

    def _answer(self, known: Sequence[tuple[Segment, Result]], now_s: float) -> None:
        """Finish segments with known results; their callers are told later, by the event loop."""
        for segment, result in known:
            result.end(segment.decode, now_s)
            segment.origin, segment.finished = Origin.CACHED, True
        asyncio.get_running_loop().call_soon(notify, [segment for segment, _ in known])

    def _progressed(self, decode: Decode) -> None:
        """Tell the segments of progress or of the end; after a passed deadline, relaunch segments with time left."""
        shared = self._shared.get(decode)
        if shared is None:
            return  # the end was seen already when a token was told
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
        """Decode again, with a decode of their own, for segments that joined just as the engine gave up."""
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
        """Forget a decode: no segment joins it any more, and its progress is ignored."""
        del self._shared[shared.decode]
        self._joinable.pop(shared.key, None)  # absent where each of identical segments is decoded


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
