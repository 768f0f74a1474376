"""How a load calls a server, whatever goes over the wire: a request, its reply, or why there is none."""

import math
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol

from bench.load.samples import Ending
from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2

CONNECT_TIMEOUT_S: Final = 10.0


class NoServerError(ConnectionError):
    """No server could be asked; the message says what was tried."""


class NoAnswerError(Exception):
    """A request ended without an answer."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(f"{ending.code}: {ending.message}")
        self.ending = ending

    @classmethod
    def of(cls, error: DragomanError) -> "NoAnswerError":
        return cls(Ending(error.code.name, error.reason, error.message))


class Reply:
    """What came back for one request, perhaps piece by piece."""

    def __init__(self, translations: Iterable[translation_pb2.TranslatedText] = ()) -> None:
        self.first_text_s = math.nan  # when the first piece of a stream was there, by `time.perf_counter`
        self.gaps_s: list[float] = []  # of a stream: the time from each piece of a text to the next one
        self._results = dict(enumerate(translations))
        self._last_s: dict[int, float] = {}

    @property
    def translations(self) -> list[translation_pb2.TranslatedText]:
        return [self._results[index] for index in sorted(self._results)]

    def add_text(self, index: int) -> None:
        at_s = time.perf_counter()
        if index in self._last_s:
            self.gaps_s.append(at_s - self._last_s[index])
        elif not self._last_s:
            self.first_text_s = at_s
        self._last_s[index] = at_s

    def add_result(self, index: int, result: translation_pb2.TranslatedText) -> None:
        self._results[index] = result


# Sends a request, with a timeout in seconds.
Ask = Callable[[bytes, float], Awaitable[Reply]]


class Calls(Protocol):
    """Calls of one server over some connections."""

    async def models(self) -> list[translation_pb2.Model]:
        """Ask what is served; a NoServerError where nobody listens, a NoAnswerError where it is not said."""

    def asks(self, *, stream: bool) -> list[Ask]:
        """Return a way to send requests for each connection."""

    def encoded(self, request: bytes) -> bytes:
        """Return what is sent for a TranslateTextRequest that is serialized."""
