"""Many texts over one call, for both clients: the texts sent but not yet answered, and the texts to send next.

If the server becomes unavailable, another call follows, and begins with the unanswered texts. So each text has two
numbers: its index in the caller's iterable, and its index in the current call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.answers import BatchTranslation, translation_of
from dragoman.errors import DragomanError, InternalError, ServerUnavailableError
from dragoman.patience import Patience, lost_call
from dragoman.v1 import translation_pb2 as pb

# Limits of one message. A server takes 1024 texts and 8 MiB by default, and a character has up to 4 bytes.
MESSAGE_TEXTS = 128
_MESSAGE_CHARACTERS = 262_144
# Limits of unanswered texts; twice the amount that a server works on. gRPC alone would buffer megabytes in advance.
WINDOW_TEXTS = 2_048
_WINDOW_CHARACTERS = 4_194_304


class Entry(NamedTuple):
    """One text.

    Attributes:
        place: its index in the caller's iterable.
        text: the text.
    """

    place: int
    text: str


def take_message(ready: deque[Entry]) -> list[Entry]:
    """Take the first ready texts, at least one, up to the limits of a message."""
    taken = [ready.popleft()]
    characters = len(taken[0].text)
    while ready and len(taken) < MESSAGE_TEXTS and characters + len(ready[0].text) <= _MESSAGE_CHARACTERS:
        taken.append(ready.popleft())
        characters += len(taken[-1].text)
    return taken


class Unanswered:
    """The texts that are sent but not answered; not thread-safe.

    Attributes:
        left: the texts that earlier calls left unanswered, and that the current call has yet to send.
    """

    def __init__(self) -> None:
        self.left: deque[Entry] = deque()
        self._sent: dict[int, Entry] = {}  # by index in the call
        self._characters = 0  # of the texts in _sent
        self._count = 0  # texts sent over the call

    @property
    def has_room(self) -> bool:
        """Whether more texts may be sent."""
        return len(self._sent) < WINDOW_TEXTS and self._characters < _WINDOW_CHARACTERS

    @property
    def none(self) -> bool:
        """Whether no text is unanswered or left to send."""
        return not (self._sent or self.left)

    def begin(self) -> None:
        """Begin a new call."""
        self.left = deque([*self._sent.values(), *self.left])  # both in order; those in _sent were sent first
        self._sent, self._characters, self._count = {}, 0, 0

    def send(self, entries: Sequence[Entry]) -> pb.BatchTranslateTextRequest:
        """Build a message with these texts."""
        message = pb.BatchTranslateTextRequest(contents=[entry.text for entry in entries])
        # Recorded before an answer can arrive.
        self._sent.update(enumerate(entries, self._count))
        self._characters += sum(len(entry.text) for entry in entries)
        self._count += len(entries)
        return message

    def receive(self, message: pb.BatchTranslateTextResponse) -> list[BatchTranslation]:
        """Read answers.

        Raises:
            InternalError: an answer belongs to a text that was not sent, or was already answered.
        """
        return [self._receive(answer) for answer in message.translations]

    def check_end(self) -> None:
        """Check that no text is unanswered after the server ended the call without an error.

        Raises:
            InternalError: a text is unanswered.
        """
        if self._sent:
            raise InternalError(f"the server ended the call with {len(self._sent)} texts unanswered")

    def _receive(self, answer: pb.BatchTranslation) -> BatchTranslation:
        entry = self._sent.pop(answer.content_index, None)
        if entry is None:
            raise InternalError(f"the server answered text {answer.content_index} of the call, which is not open")
        self._characters -= len(entry.text)
        return BatchTranslation(entry.place, translation_of(answer.translation))


def pause_s(error: DragomanError, patience: Patience, *, done: bool) -> float | None:
    """Compute the pause after a failed call; None if no other call is needed.

    Args:
        error: the error of the call.
        patience: the patience for all calls together.
        done: whether all texts are answered; then an unavailable server does not matter.

    Raises:
        DragomanError: the given error, if no other call is to be made.
    """
    error = lost_call(error)
    return None if done and isinstance(error, ServerUnavailableError) else patience.pause_s(error)
