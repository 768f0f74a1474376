"""One decode for all segments that ask for the same: it asks the engine for what those who wait for it do."""

from collections import Counter
from collections.abc import Callable
from functools import reduce

from service.decode import Decode
from service.queue.result_cache import Key
from service.segment import Origin, Segment


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


def _later(first_s: float | None, second_s: float | None) -> float | None:
    """Give the later of two times, where None is never."""
    return None if first_s is None or second_s is None else max(first_s, second_s)
