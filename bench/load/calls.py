"""How a load calls a server, whatever goes over the wire: a request, its reply, or why there is none."""

# Python 3.11 cannot evaluate array[float].
from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from bench.load.samples import Ending
from dragoman.v1 import translation_pb2

CONNECT_TIMEOUT_S: Final = 10.0


class NoServerError(ConnectionError):
    """No server could be asked; the message says what was tried."""


class NoAnswerError(Exception):
    """A request ended without an answer."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(f"{ending.code}: {ending.message}")
        self.ending = ending


@dataclass
class Reply:
    """What came back for one request.

    Attributes:
        first_text_s: when the first piece of a stream was there, on the clock of the generator; NaN where none was.
        gaps_s: of a stream: the time from each piece of a text to the next one.
    """

    translations: Sequence[translation_pb2.TranslatedText]
    first_text_s: float = math.nan
    gaps_s: array[float] = field(default_factory=lambda: array("d"))


class StreamedReply:
    """A reply that comes piece by piece."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._reply = Reply([])
        self._results: dict[int, translation_pb2.TranslatedText] = {}
        self._last_s: dict[int, float] = {}

    def add_text(self, index: int) -> None:
        at_s = self._now_s()
        if index in self._last_s:
            self._reply.gaps_s.append(at_s - self._last_s[index])
        elif not self._last_s:
            self._reply.first_text_s = at_s
        self._last_s[index] = at_s

    def add_result(self, index: int, result: translation_pb2.TranslatedText) -> None:
        self._results[index] = result

    def whole(self) -> Reply:
        self._reply.translations = [self._results[index] for index in sorted(self._results)]
        return self._reply


class Ask(Protocol):
    """One way to send a request."""

    async def __call__(self, request: bytes, timeout_s: float, now_s: Callable[[], float]) -> Reply:
        """Return the whole reply."""


class Calls(Protocol):
    """Calls of one server over some connections."""

    async def models(self) -> list[translation_pb2.Model]:
        """Ask what the server serves.

        Raises:
            NoServerError: nobody listens there.
            NoAnswerError: the server does not say it.
        """

    def asks(self, *, stream: bool) -> list[Ask]:
        """Return a way to send requests for each connection."""

    def encoded(self, request: bytes) -> bytes:
        """Return what is sent for a TranslateTextRequest that is serialized."""
