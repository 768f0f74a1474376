"""The sender of a load test: one request after another over a few connections, and how each ended.

It shares its cores with the server that it measures, so a request costs as little Python as its client allows:
requests are encoded before the test, and an answer is parsed for its counts and dropped.
"""

import time
from collections.abc import Callable, Sequence

from bench.load.calls import Ask, NoAnswerError, Reply
from bench.load.samples import ANSWERED, Samples
from dragoman import errors
from dragoman.v1 import translation_pb2

Check = Callable[[int, Sequence[translation_pb2.TranslatedText]], None]


class Generator:
    """Sends encoded requests in turn, over connections in turn, and records how each ended."""

    def __init__(
        self,
        asks: Sequence[Ask],
        requests: Sequence[bytes],
        timeout_s: float,
        samples: Samples,
        check: Check | None = None,
        *,
        bulk: frozenset[int] = frozenset(),
    ) -> None:
        self.sent = 0  # requests sent since the start, those of the warm-up too
        self.in_flight = 0
        self.max_in_flight = 0
        self._asks = asks
        self._requests = requests
        self._timeout_s = timeout_s
        self._samples = samples
        self._check = check  # is given the number of each request that is answered, and its translations
        self._bulk = bulk  # the numbers of the requests that are of that priority
        self._start = time.perf_counter()

    def now_s(self) -> float:
        """Measure the seconds since the generator was made: the clock of every time here."""
        return time.perf_counter() - self._start

    async def send(self, due_s: float) -> bool:
        """Send the next request, record how it ends, and return whether it was answered."""
        ask = self._asks[self.sent % len(self._asks)]
        number = self.sent % len(self._requests)
        self.sent += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        sent_s, bulk = self.now_s(), number in self._bulk
        ending = ANSWERED
        try:
            reply = await ask(self._requests[number], self._timeout_s)
            _raise_first_error(reply.translations)
        except NoAnswerError as error:
            reply, ending = Reply(), error.ending
        finally:
            self.in_flight -= 1
        translations = reply.translations
        self._samples.add(
            due_s,
            sent_s,
            self.now_s(),
            ending,
            sentences=len(translations),
            source_tokens=sum(translation.source_tokens for translation in translations),
            target_tokens=sum(translation.target_tokens for translation in translations),
            bulk=bulk,
            first_text_s=reply.first_text_s - self._start,
            gaps_s=reply.gaps_s,
        )
        if self._check is not None and ending is ANSWERED:
            self._check(number, translations)
        return ending is ANSWERED


def _raise_first_error(translations: Sequence[translation_pb2.TranslatedText]) -> None:
    """Raise how the first text without a translation ended: an answer that lacks one is none."""
    for translation in translations:
        if translation.HasField("text_error"):
            raise NoAnswerError.of(errors.from_text_error(translation.text_error))
