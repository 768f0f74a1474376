"""Finished translations, kept, and identical segments in flight, decoded once; lives on the event loop."""

import asyncio
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import Final, NamedTuple

from dragoman.errors import DeadlineExceededError, DragomanError
from service.lru import LruStore
from service.options import Decoding, RequestOptions
from service.queue.mailbox import Mailbox, Reservation, notify
from service.segment import FinishReason, Origin, Segment, SegmentStatus
from service.telemetry.metrics import ModelMetrics

# The ends that would be the same if the segment were decoded again.
_LASTING: Final = (FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION)
# What an entry takes besides its ids and its key's: objects, and their place in the store. Measured: 466, and 490
# with a log-probability.
_ENTRY_BYTES: Final = 512


class _Key(NamedTuple):
    """All that the outcome of a segment depends on, within one bundle."""

    source_ids: bytes
    max_target_tokens: int
    decoding: Decoding

    @classmethod
    def of(cls, segment: Segment) -> "_Key":
        ids = array("i", segment.source_ids).tobytes()
        return cls(ids, segment.max_target_tokens, segment.decoding)


class _Result(NamedTuple):
    """How a segment ended, and the seconds from its being taken by an engine thread to its end."""

    target_ids: "array[int]"  # quoted: Python 3.11 has no array[int]
    log_probability: float
    finish_reason: FinishReason
    engine_s: float


class _InFlight:
    """A leader, which is a segment of our own in the mailbox, and the callers' segments that wait for it."""

    __slots__ = ("_deadlines", "_wanting_deltas", "key", "leader", "waiters")

    def __init__(self, key: _Key, leader: Segment) -> None:
        self.key = key
        self.leader = leader
        self.waiters: dict[Segment, None] = {}  # a set in order of arrival
        # How many of them have each deadline: the segments of one call have the same.
        self._deadlines: Counter[float | None] = Counter()
        self._wanting_deltas = 0

    def join(self, waiter: Segment) -> None:
        """Have the leader decoded for this one, too."""
        leader = self.leader
        leader.deadline_s = _later(leader.deadline_s, waiter.deadline_s)
        leader.wants_deltas |= waiter.wants_deltas
        waiter.target_ids = leader.target_ids  # the very list, which only grows
        self.waiters[waiter] = None
        self._deadlines[waiter.deadline_s] += 1
        self._wanting_deltas += waiter.wants_deltas

    def leave(self, waiter: Segment) -> None:
        """Forget one who waits, in the same time however many do."""
        del self.waiters[waiter]
        self._wanting_deltas -= waiter.wants_deltas
        self._deadlines[waiter.deadline_s] -= 1
        if not self._deadlines[waiter.deadline_s]:
            del self._deadlines[waiter.deadline_s]

    def trim(self) -> None:
        """Ask of the leader, now that some have left, no more than those who stay."""
        self.leader.wants_deltas = self._wanting_deltas > 0
        if self.leader.deadline_s not in self._deadlines:
            # Computed first and set at once: an engine thread reads it.
            self.leader.deadline_s = reduce(_later, self._deadlines)


class ResultCache:
    """Stands before a mailbox: what is known is answered, what is in flight is shared, the rest is submitted.

    A caller's segment never enters the mailbox: a leader does in its place, lives as long as anyone waits for it, and
    has the latest deadline of theirs. Each call ends at its own deadline by itself, and cancels. Errors go to all
    who wait, and are forgotten.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        loop: asyncio.AbstractEventLoop,
        metrics: ModelMetrics,
        *,
        limit_bytes: int,
        coalesce: bool,
    ) -> None:
        """An empty cache; may be made on any thread, all else happens on the loop's.

        Args:
            mailbox: of the engine whose results these are, bound to the loop.
            loop: on which callers are told of progress.
            metrics: of the model.
            limit_bytes: what the results may take, keys and books counted; 0: none is kept.
            coalesce: whether identical segments in flight are decoded once.
        """
        self._mailbox = mailbox
        self._loop = loop
        self._metrics = metrics
        self._coalesce = coalesce
        self._results: LruStore[_Key, _Result] = LruStore(limit_bytes)
        self._led: dict[Segment, _InFlight] = {}  # all flights, by leader
        self._awaited: dict[Segment, _InFlight] = {}  # all flights, by waiter
        self._joinable: dict[_Key, _InFlight] = {}

    @property
    def size_bytes(self) -> int:
        """Bytes of the results that are kept."""
        return self._results.size_bytes

    @property
    def flights(self) -> int:
        """Leaders that have not ended."""
        return len(self._led)

    @property
    def portion_source_tokens(self) -> int:
        """See the mailbox."""
        return self._mailbox.portion_source_tokens

    def precheck(self, options: RequestOptions, text_bytes: int) -> None:
        """See the mailbox."""
        self._mailbox.precheck(options, text_bytes)

    def reserve(self, options: RequestOptions, text_bytes: int) -> AbstractContextManager[Reservation]:
        """See the mailbox."""
        return self._mailbox.reserve(options, text_bytes)

    def submit(self, segments: Sequence[Segment], *, let_in: bool = False) -> None:
        """Take all segments, or none; nobody is told of progress before this returns.

        Args:
            segments: of one client and priority.
            let_in: whether their call has been let in already, see the mailbox.

        Raises:
            QueueFullError: the mailbox has no room for those that nobody decodes yet.
            DrainingError: the mailbox is closed.
            DragomanError: the engine has failed.
        """
        known: list[tuple[Segment, _Result]] = []
        joining: list[tuple[Segment, _InFlight]] = []
        new: list[_InFlight] = []
        joinable: dict[_Key, _InFlight] = {}  # of the new ones
        for segment in segments:
            key = _Key.of(segment)
            if (result := self._results.get(key)) is not None:
                known.append((segment, result))
                continue
            flight = self._joinable.get(key) or joinable.get(key)
            if flight is not None:
                segment.origin = Origin.COALESCED
            else:
                flight = _InFlight(key, segment.twin(self._progressed))
                new.append(flight)
                if self._coalesce:
                    joinable[key] = flight
            joining.append((segment, flight))
        self._launch(new, let_in=let_in)
        # What can fail has not: from here on the segments are ours.
        self._promote(joining)
        now_s = time.monotonic()
        for segment in segments:
            segment.submitted_s = now_s
        self._board(joining)
        self._answer(known, now_s)
        self._count(len(known), len(new), len(joining) - len(new))

    def cancel(self, segments: Iterable[Segment]) -> None:
        """Withdraw segments: `on_progress` is not called for them any more; those who share a flight stay in it."""
        now_s = time.monotonic()
        left: dict[_InFlight, None] = {}
        for segment in segments:
            segment.cancel_requested = True  # keeps the news of its end, if that is on its way, from the caller
            flight = self._awaited.pop(segment, None)
            if flight is not None:
                flight.leave(segment)
                left[flight] = None
                segment.target_ids = segment.target_ids.copy()  # which grows no more
                segment.end_early(now_s)
        abandoned = []
        for flight in left:
            if flight.waiters:
                flight.trim()
            else:
                self._close(flight)
                abandoned.append(flight.leader)
        if abandoned:
            self._mailbox.cancel(abandoned)

    def clear(self) -> None:
        """Forget all results."""
        self._metrics.result_cache_bytes.dec(self._results.size_bytes)
        self._results = LruStore(self._results.limit_bytes)

    def _launch(self, flights: Sequence[_InFlight], *, let_in: bool = False, again: bool = False) -> None:
        if not flights:
            return
        self._mailbox.submit([flight.leader for flight in flights], let_in=let_in, again=again)
        for flight in flights:
            self._led[flight.leader] = flight
            if self._coalesce:
                self._joinable[flight.key] = flight

    def _promote(self, joining: Iterable[tuple[Segment, _InFlight]]) -> None:
        """Have leaders that wait take the turns of those who join them, where these come sooner."""
        for segment, flight in joining:
            leader = flight.leader
            same = segment.client == leader.client and segment.priority >= leader.priority
            if leader.status is SegmentStatus.WAITING and not same:
                self._mailbox.promote(leader, segment.client, segment.priority)

    def _board(self, joining: Iterable[tuple[Segment, _InFlight]]) -> None:
        for segment, flight in joining:
            flight.join(segment)
            self._awaited[segment] = flight

    def _answer(self, known: Sequence[tuple[Segment, _Result]], now_s: float) -> None:
        """Finish segments whose results are here; their callers are told later, when they are ready to listen."""
        if not known:
            return
        for segment, result in known:
            segment.origin = Origin.CACHED
            segment.admitted_s = segment.encoded_s = segment.first_token_s = now_s
            segment.target_ids = result.target_ids.tolist()
            segment.log_probability = result.log_probability
            segment.finish(result.finish_reason, now_s)
        self._metrics.result_cache_saved_seconds_total.inc(sum(result.engine_s for _, result in known))
        self._loop.call_soon(notify, [segment for segment, _ in known])

    def _progressed(self, leader: Segment) -> None:
        """Pass on the news of a leader."""
        flight = self._led.get(leader)
        if flight is None:
            return  # its end already showed when a token of it was told
        if leader.finished:
            self._land(flight)
        else:
            notify([waiter for waiter in flight.waiters if waiter.wants_deltas])

    def _land(self, flight: _InFlight) -> None:
        """End all who waited as the leader ended; but a passed deadline may not be theirs."""
        leader, waiters, late = flight.leader, list(flight.waiters), []
        self._close(flight)
        if isinstance(leader.error, DeadlineExceededError):
            now_s = time.monotonic()
            late = [waiter for waiter in waiters if _has_time(waiter, now_s)]
            waiters = [waiter for waiter in waiters if not _has_time(waiter, now_s)]
        for waiter in waiters:
            _conclude(waiter, leader)
        if leader.finish_reason in _LASTING:
            self._keep(flight.key, leader, leader.finish_reason)
            if len(waiters) > 1:
                self._metrics.coalesced_saved_seconds_total.inc((len(waiters) - 1) * _engine_s(leader))
        if late:
            self._relaunch(flight.key, late)
        notify(waiters)

    def _relaunch(self, key: _Key, waiters: Sequence[Segment]) -> None:
        """Begin again for those who joined just as the engine gave up, and have time left."""
        flight = _InFlight(key, waiters[0].twin(self._progressed))
        try:
            self._launch([flight], again=True)
        except DragomanError as error:
            for waiter in waiters:
                waiter.fail(error, time.monotonic())
            notify(waiters)
        else:
            self._board((waiter, flight) for waiter in waiters)

    def _keep(self, key: _Key, leader: Segment, reason: FinishReason) -> None:
        result = _Result(array("i", leader.target_ids), leader.log_probability, reason, _engine_s(leader))
        size_bytes = len(key.source_ids) + result.target_ids.itemsize * len(result.target_ids) + _ENTRY_BYTES
        before_bytes = self._results.size_bytes
        self._results.put(key, result, size_bytes)
        self._metrics.result_cache_bytes.inc(self._results.size_bytes - before_bytes)

    def _close(self, flight: _InFlight) -> None:
        """Forget a flight."""
        del self._led[flight.leader]
        if self._joinable.get(flight.key) is flight:
            del self._joinable[flight.key]
        for waiter in flight.waiters:
            del self._awaited[waiter]

    def _count(self, hits: int, misses: int, coalesced: int) -> None:
        # Most calls are of one kind: a count of 0 would take as long as another.
        if coalesced:
            self._metrics.coalesced_segments_total.inc(coalesced)
        if hits:
            self._metrics.result_cache_hits_total.inc(hits)
        if misses and self._results.limit_bytes:
            self._metrics.result_cache_misses_total.inc(misses)


def _conclude(waiter: Segment, leader: Segment) -> None:
    """End a waiter as its leader ended, with no time before its own submission."""
    waiter.admitted_s = _later(leader.admitted_s, waiter.submitted_s)
    waiter.encoded_s = _later(leader.encoded_s, waiter.submitted_s)
    waiter.first_token_s = _later(leader.first_token_s, waiter.submitted_s)
    waiter.log_probability = leader.log_probability
    end_s = _later(leader.finished_s, waiter.submitted_s) or time.monotonic()
    if leader.error is not None:
        waiter.fail(leader.error, end_s)
    elif leader.finish_reason is not None:
        waiter.finish(leader.finish_reason, end_s)


def _has_time(segment: Segment, now_s: float) -> bool:
    return segment.deadline_s is None or segment.deadline_s > now_s


def _engine_s(segment: Segment) -> float:
    """Seconds from its being taken to its end; 0 where there is no such time."""
    if segment.admitted_s is None or segment.finished_s is None:
        return 0.0
    return segment.finished_s - segment.admitted_s


def _later(first_s: float | None, second_s: float | None) -> float | None:
    """The later of two times, where None is never."""
    return None if first_s is None or second_s is None else max(first_s, second_s)
