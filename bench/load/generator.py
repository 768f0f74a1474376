"""The sender of a load test: one request after another over a few connections, and how each ended.

It shares its cores with the server that it measures, so a request costs as little Python as grpc.aio allows:
requests are serialized before the test, and an answer is parsed for its counts and dropped.
"""

# Python 3.11 cannot evaluate array[float].
from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import grpc
import grpc.aio

from bench.load.samples import Ending, Samples
from dragoman import errors
from dragoman.v1 import translation_pb2

TRANSLATE_TEXT = "/dragoman.v1.Translation/TranslateText"
STREAM_TRANSLATE_TEXT = "/dragoman.v1.Translation/StreamTranslateText"

Metadata = Sequence[tuple[str, str]]
Check = Callable[[int, Sequence[translation_pb2.TranslatedText]], None]


@dataclass
class Reply:
    """What came back for one request.

    Attributes:
        translations: one a text.
        first_text_s: when the first piece of a stream was there, on the clock of the generator; NaN where none was.
        gaps_s: of a stream: the time from each piece of a text to the next one.
    """

    translations: Sequence[translation_pb2.TranslatedText]
    first_text_s: float = math.nan
    gaps_s: array[float] = field(default_factory=lambda: array("d"))


class Ask(Protocol):
    """One way to send a request."""

    async def __call__(self, request: bytes, timeout_s: float, now_s: Callable[[], float]) -> Reply:
        """Return the whole reply, or raise the error of the call."""


def unary(channel: grpc.aio.Channel, metadata: Metadata = ()) -> Ask:
    """Ask for all translations in one answer."""
    call = channel.unary_unary(TRANSLATE_TEXT)  # without serializers a call takes and gives bytes

    async def ask(request: bytes, timeout_s: float, now_s: Callable[[], float]) -> Reply:
        answer = await call(request, timeout=timeout_s, metadata=metadata)
        return Reply(translation_pb2.TranslateTextResponse.FromString(answer).translations)

    return ask


def streamed(channel: grpc.aio.Channel, metadata: Metadata = ()) -> Ask:
    """Make calls whose translations come piece by piece."""
    call = channel.unary_stream(STREAM_TRANSLATE_TEXT)

    async def ask(request: bytes, timeout_s: float, now_s: Callable[[], float]) -> Reply:
        reply = Reply([])
        results: dict[int, translation_pb2.TranslatedText] = {}
        last_s: dict[int, float] = {}
        async for message in call(request, timeout=timeout_s, metadata=metadata):
            piece = translation_pb2.StreamTranslateTextResponse.FromString(message)
            if piece.HasField("result"):
                results[piece.content_index] = piece.result
            if piece.text_delta:
                at_s = now_s()
                if piece.content_index in last_s:
                    reply.gaps_s.append(at_s - last_s[piece.content_index])
                elif not last_s:
                    reply.first_text_s = at_s
                last_s[piece.content_index] = at_s
        reply.translations = [results[index] for index in sorted(results)]
        return reply

    return ask


class Generator:
    """Sends serialized requests in turn over channels in turn, and records how each ended.

    Attributes:
        sent: Requests sent since the start, those of the warm-up too.
        in_flight: Requests sent and not ended.
        max_in_flight: The most there were at once.
    """

    def __init__(
        self,
        channels: Sequence[grpc.aio.Channel],
        requests: Sequence[bytes],
        timeout_s: float,
        samples: Samples,
        check: Check | None = None,
        *,
        way: Callable[[grpc.aio.Channel], Ask] = unary,
        bulk: frozenset[int] = frozenset(),
    ) -> None:
        """Send nothing yet.

        Args:
            channels: To the server.
            requests: Serialized.
            timeout_s: Of each request.
            samples: Where it is recorded how requests end.
            check: Is given the number of each request that is answered, and its translations.
            way: How a request is sent: `unary` or `streamed`.
            bulk: The numbers of the requests that are of that priority.
        """
        self.sent = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self._ask = [way(channel) for channel in channels]
        self._requests = requests
        self._timeout_s = timeout_s
        self._samples = samples
        self._check = check
        self._bulk = bulk
        self._start = time.perf_counter()

    def now_s(self) -> float:
        """Measure the seconds since the generator was made: the clock of every time here."""
        return time.perf_counter() - self._start

    async def send(self, due_s: float) -> bool:
        """Send the next request, record how it ends, and return whether it was answered."""
        ask = self._ask[self.sent % len(self._ask)]
        number = self.sent % len(self._requests)
        self.sent += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        sent_s = self.now_s()
        try:
            reply = await ask(self._requests[number], self._timeout_s, self.now_s)
        except grpc.aio.AioRpcError as error:
            ending = Ending(error.code().name, errors.from_rpc_error(error).reason, error.details() or "")
            self._record_error(number, ending, due_s, sent_s)
            return False
        finally:
            self.in_flight -= 1
        if ending_of_text := _first_error(reply.translations):
            self._record_error(number, ending_of_text, due_s, sent_s)
            return False
        self._record_answer(number, reply, due_s, sent_s)
        return True

    def _record_answer(self, number: int, reply: Reply, due_s: float, sent_s: float) -> None:
        ended_s = self.now_s()
        self._samples.succeeded(
            due_s,
            sent_s,
            ended_s,
            sentences=len(reply.translations),
            source_tokens=sum(translation.source_tokens for translation in reply.translations),
            target_tokens=sum(translation.target_tokens for translation in reply.translations),
            bulk=number in self._bulk,
            first_text_s=reply.first_text_s,
            gaps_s=reply.gaps_s,
        )
        if self._check is not None:
            self._check(number, reply.translations)

    def _record_error(self, number: int, ending: Ending, due_s: float, sent_s: float) -> None:
        bulk = number in self._bulk
        self._samples.ended_in_error(due_s, sent_s, self.now_s(), **ending._asdict(), bulk=bulk)


def _first_error(translations: Sequence[translation_pb2.TranslatedText]) -> Ending | None:
    """Say how the first text without a translation ended: an answer that lacks one is none."""
    for translation in translations:
        if translation.HasField("text_error"):
            error = errors.from_text_error(translation.text_error)
            return Ending(error.code.name, error.reason, error.message)
    return None
