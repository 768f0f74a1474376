"""Many texts over one call, for both clients: what was sent and not yet answered, and what is to be sent next.

A call that breaks because its server is unavailable is followed by another one, which begins with the texts that are
unanswered. So texts are numbered twice: by the caller's iterable, and by each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.answers import BatchTranslation, translation_of
from dragoman.errors import DragomanError, InternalError, ServerUnavailableError
from dragoman.patience import Patience, lost_call
from dragoman.v1 import translation_pb2 as pb

# Of one message. A server takes 1024 texts and 8 MiB by default, and a character has up to 4 bytes.
MESSAGE_TEXTS = 128
_MESSAGE_CHARACTERS = 262_144
# Sent and not answered, at most; twice what a server works on. gRPC alone would take megabytes in advance.
WINDOW_TEXTS = 2_048
_WINDOW_CHARACTERS = 4_194_304


class Entry(NamedTuple):
    """One text.

    Attributes:
        place: of it in the caller's iterable.
        text: itself.
    """

    place: int
    text: str


def take_message(ready: deque[Entry]) -> list[Entry]:
    """Take what makes a message: the first of those that are ready, one at least."""
    taken = [ready.popleft()]
    characters = len(taken[0].text)
    while ready and len(taken) < MESSAGE_TEXTS and characters + len(ready[0].text) <= _MESSAGE_CHARACTERS:
        taken.append(ready.popleft())
        characters += len(taken[-1].text)
    return taken


class Unanswered:
    """The texts that were sent and are not answered; has no lock of its own.

    Attributes:
        left: those that earlier calls left, and that are still to be sent over the current one.
    """

    def __init__(self) -> None:
        self.left: deque[Entry] = deque()
        self._sent: dict[int, Entry] = {}  # by number within the call
        self._characters = 0  # of those
        self._count = 0  # texts of the call

    @property
    def has_room(self) -> bool:
        """Whether more may be sent."""
        return len(self._sent) < WINDOW_TEXTS and self._characters < _WINDOW_CHARACTERS

    @property
    def none(self) -> bool:
        """Whether there are none, nor any that are still to be sent."""
        return not (self._sent or self.left)

    def begin(self) -> None:
        """Begin a call."""
        self.left = deque([*self._sent.values(), *self.left])  # each in order, and sent in order
        self._sent, self._characters, self._count = {}, 0, 0

    def send(self, entries: Sequence[Entry]) -> pb.BatchTranslateTextRequest:
        """Build a message of these texts."""
        message = pb.BatchTranslateTextRequest(contents=[entry.text for entry in entries])
        # Entered before it can be answered.
        self._sent.update(enumerate(entries, self._count))
        self._characters += sum(len(entry.text) for entry in entries)
        self._count += len(entries)
        return message

    def receive(self, message: pb.BatchTranslateTextResponse) -> list[BatchTranslation]:
        """Read answers.

        Raises:
            InternalError: one is of a text that was not sent, or was answered before.
        """
        return [self._receive(answer) for answer in message.translations]

    def check_end(self) -> None:
        """Make sure that nothing is left where the server says that all is done.

        Raises:
            InternalError: something is.
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
    """Say how long to wait after a call that failed; None where no other is needed.

    Args:
        error: of the call.
        patience: of the whole.
        done: whether all texts are answered: then it does not matter that the server went.

    Raises:
        DragomanError: the given one, where no other call is to be made.
    """
    error = lost_call(error)
    return None if done and isinstance(error, ServerUnavailableError) else patience.pause_s(error)
