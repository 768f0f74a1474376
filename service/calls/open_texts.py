"""The texts of one call between their coming and their answers: what of each is unfinished, and which are ready."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat

from dragoman.errors import DragomanError
from service.calls.text_worker import Text
from service.segment import Segment


@dataclass(slots=True, eq=False)
class _OpenText:
    """One text.

    Attributes:
        content: its document, or the error in its place.
        size_bytes: that it takes of the window of its call.
        unfinished: its segments that have not ended: a set in the order of the text.
        read: whether it has been read to its end.
    """

    content: Text
    size_bytes: int = 0
    unfinished: dict[Segment, None] = field(default_factory=dict)
    read: bool = False


class OpenTexts:
    """Texts by their numbers. A text is finished when it has been read to its end and all its segments have ended.

    Attributes:
        held_bytes: the sizes of all of them.
        unread: how many have not been read to their ends.
        finished: the numbers of those that are.
        moved: the numbers of those with new tokens or ended segments, until someone asks.
    """

    def __init__(self) -> None:
        self.held_bytes = 0
        self.unread = 0
        self.finished: set[int] = set()
        self.moved: set[int] = set()
        self._texts: dict[int, _OpenText] = {}  # in the order of their numbers

    def __len__(self) -> int:
        return len(self._texts)

    def content(self, number: int) -> Text:
        """Give a text, or the error in its place."""
        return self._texts[number].content

    def expect(self, texts: Mapping[int, Text], sizes: Sequence[int] = ()) -> None:
        """Take texts that are let in, without any segments yet.

        Args:
            texts: by their numbers.
            sizes: that they take of the window; none: the call has no window.
        """
        self.unread += len(texts)
        self.held_bytes += sum(sizes)
        for (number, text), size_bytes in zip(texts.items(), sizes or repeat(0), strict=False):
            self._texts[number] = _OpenText(text, size_bytes)

    def take(self, texts: Mapping[int, Text]) -> list[Segment]:
        """Take texts that are let in and were read to their ends, in place of all steps; gives their segments."""
        segments: list[Segment] = []
        for number, text in texts.items():
            opened = self._texts[number] = _OpenText(text)
            opened.read = True
            if not isinstance(text, DragomanError):
                found = text.segments
                opened.unfinished = dict.fromkeys(found)
                segments += found
            if not opened.unfinished:
                self.moved.add(number)
                self.finished.add(number)
        return segments

    def take_up(self, number: int, segments: Sequence[Segment]) -> None:
        """Note segments of a text that were submitted, or are about to be."""
        self._texts[number].unfinished.update(dict.fromkeys(segments))

    def close(self, number: int) -> bool:
        """Note that a text has no further segments; says whether it is finished."""
        self._texts[number].read = True
        self.unread -= 1
        return self.check(number)

    def check(self, number: int) -> bool:
        """Note whether a text is finished, and say so."""
        text = self._texts[number]
        finished = text.read and not text.unfinished
        if finished:
            self.moved.add(number)
            self.finished.add(number)
        return finished

    def note(self, number: int, segment: Segment) -> bool:
        """Note that a segment of a text has a new token or has ended; says whether that end is news."""
        self.moved.add(number)
        unfinished = self._texts[number].unfinished
        if not segment.finished or segment not in unfinished:
            return False
        del unfinished[segment]
        return True

    def fail(self, number: int, error: DragomanError) -> list[Segment]:
        """Put an error in the place of a text; gives its segments that have not ended, which are its no more."""
        text = self._texts[number]
        text.content = error
        left = list(text.unfinished)
        text.unfinished.clear()
        return left

    def ready(self, *, in_order: bool) -> list[int]:
        """Say which texts are finished; in order: those before the first that is not."""
        if not in_order:
            return sorted(self.finished)
        ready = []
        for number in self._texts:
            if number not in self.finished:
                break
            ready.append(number)
        return ready

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of texts that are finished."""
        for number in numbers:
            self.held_bytes -= self._texts.pop(number).size_bytes
            self.finished.remove(number)

    def pop_unfinished(self, count: int) -> list[Segment]:
        """Give segments that have not ended, at most `count`, which are of no text any more."""
        unfinished = ((text, segment) for text in self._texts.values() for segment in text.unfinished)
        first = list(islice(unfinished, count))
        for text, segment in first:
            del text.unfinished[segment]
        return [segment for _, segment in first]
