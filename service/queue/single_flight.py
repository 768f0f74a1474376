"""Decodes on their way, and the segments that wait for each: identical ones share one; lives on the event loop.

The name is that of Go's package singleflight (https://pkg.go.dev/golang.org/x/sync/singleflight).
"""

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from typing import Final

from service.decode import Decode
from service.queue.result_cache import Key
from service.segment import Segment


class SharedDecode:
    """A decode in the mailbox, and the segments that wait for it.

    It has the latest deadline of theirs. Each call ends at its own deadline by itself, and withdraws its segments.

    Attributes:
        key: of its result.
        decode: it itself.
        segments: that wait: a set in order of arrival.
    """

    __slots__ = ("_deadlines", "_wanting_deltas", "decode", "key", "segments")

    def __init__(self, key: Key, decode: Decode) -> None:
        self.key = key
        self.decode = decode
        self.segments: dict[Segment, None] = {}
        # How many of them have each deadline: the segments of one call have the same.
        self._deadlines: Counter[float | None] = Counter()
        self._wanting_deltas = 0

    def join(self, segment: Segment) -> None:
        """Have it decoded for this segment, too."""
        decode, options = self.decode, segment.options
        if decode.deadline_s != options.deadline_s:
            decode.deadline_s = _later(decode.deadline_s, options.deadline_s)
        decode.wants_deltas |= options.wants_deltas
        segment.decode = decode
        self.segments[segment] = None
        self._deadlines[options.deadline_s] += 1
        self._wanting_deltas += options.wants_deltas

    def leave(self, segment: Segment) -> None:
        """Forget a segment that waits, in the same time however many do."""
        options = segment.options
        del self.segments[segment]
        self._wanting_deltas -= options.wants_deltas
        self._deadlines[options.deadline_s] -= 1
        if not self._deadlines[options.deadline_s]:
            del self._deadlines[options.deadline_s]

    def trim(self) -> None:
        """Ask for no more, now that some have left, than those who stay do."""
        self.decode.wants_deltas = self._wanting_deltas > 0
        if self.decode.deadline_s not in self._deadlines:
            # Computed first and set at once: an engine thread reads it.
            self.decode.deadline_s = reduce(_later, self._deadlines)


class SingleFlight:
    """The decodes that have not ended, by themselves, by their segments and by what they give."""

    def __init__(self, *, coalesce: bool) -> None:
        """Begin with no decode.

        Args:
            coalesce: whether identical segments share one.
        """
        self.coalesce: Final = coalesce
        self._by_decode: dict[Decode, SharedDecode] = {}
        self._by_segment: dict[Segment, SharedDecode] = {}
        self._by_key: dict[Key, SharedDecode] = {}

    def __len__(self) -> int:
        return len(self._by_decode)

    def find(self, key: Key) -> SharedDecode | None:
        """Find one that a segment may join."""
        return self._by_key.get(key)

    def of(self, decode: Decode) -> SharedDecode | None:
        """Find what is shared of a decode that has not ended; None of others."""
        return self._by_decode.get(decode)

    def add(self, shared: SharedDecode) -> None:
        """Take up one that has been submitted."""
        self._by_decode[shared.decode] = shared
        if self.coalesce:
            self._by_key[shared.key] = shared

    def join(self, segment: Segment, shared: SharedDecode) -> None:
        """Have a segment wait for a decode."""
        shared.join(segment)
        self._by_segment[segment] = shared

    def leave(self, segments: Iterable[Segment], now_s: float) -> list[Decode]:
        """End segments that are withdrawn; gives the decodes for which nobody waits any more."""
        left: dict[SharedDecode, None] = {}
        for segment in segments:
            shared = self._by_segment.pop(segment, None)
            if shared is not None:
                shared.leave(segment)
                left[shared] = None
                segment.leave(now_s)
        abandoned = []
        for shared in left:
            if shared.segments:
                shared.trim()
            else:
                self.remove(shared)
                abandoned.append(shared.decode)
        return abandoned

    def remove(self, shared: SharedDecode) -> None:
        """Forget a decode, and who waits for it."""
        del self._by_decode[shared.decode]
        if self._by_key.get(shared.key) is shared:
            del self._by_key[shared.key]
        for segment in shared.segments:
            del self._by_segment[segment]


def _later(first_s: float | None, second_s: float | None) -> float | None:
    """Give the later of two times, where None is never."""
    return None if first_s is None or second_s is None else max(first_s, second_s)
