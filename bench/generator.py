"""The sender of a load test: one request after another over a few connections, and how each ended.

It shares its cores with the server that it measures, so a request costs as little Python as grpc.aio allows:
requests are serialized before the test, and an answer is parsed for its counts and dropped.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import grpc
import grpc.aio

from bench.samples import Samples
from dragoman import errors
from dragoman.v1 import translation_pb2

TRANSLATE_TEXT = "/dragoman.v1.Translation/TranslateText"

Check = Callable[[int, Sequence[translation_pb2.TranslatedText]], None]

_CHANNEL_OPTIONS = [
    # Without its own pool every channel to one address would be the same connection.
    ("grpc.use_local_subchannel_pool", 1),
    # One request is one attempt: a retry that nobody sees would hide errors.
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", -1),
]


async def open_channels(address: str, count: int, stack: AsyncExitStack) -> list[grpc.aio.Channel]:
    """Opens channels, each with its own connection, that close with the stack; does not wait for them."""
    channels = [grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS) for _ in range(count)]
    for channel in channels:
        await stack.enter_async_context(channel)
    return channels


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
    ) -> None:
        """Sends nothing yet.

        Args:
            channels: To the server.
            requests: Serialized.
            timeout_s: Of each request.
            samples: Where it is recorded how requests end.
            check: Is given the number of each request that is answered, and its translations.
        """
        self.sent = 0
        self.in_flight = 0
        self.max_in_flight = 0
        # Without serializers a call takes and gives bytes.
        self._calls = [channel.unary_unary(TRANSLATE_TEXT) for channel in channels]
        self._requests = requests
        self._timeout_s = timeout_s
        self._samples = samples
        self._check = check
        self._start = time.perf_counter()

    def now_s(self) -> float:
        """Seconds since the generator was made: the clock of every time here."""
        return time.perf_counter() - self._start

    async def send(self, due_s: float) -> bool:
        """Sends the next request, records how it ends, and returns whether it succeeded."""
        call = self._calls[self.sent % len(self._calls)]
        number = self.sent % len(self._requests)
        self.sent += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        sent_s = self.now_s()
        try:
            answer = await call(self._requests[number], timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            self._record_error(error, due_s, sent_s)
            return False
        finally:
            self.in_flight -= 1
        self._record_answer(number, answer, due_s, sent_s)
        return True

    def _record_answer(self, number: int, answer: bytes, due_s: float, sent_s: float) -> None:
        ended_s = self.now_s()
        translations = translation_pb2.TranslateTextResponse.FromString(answer).translations
        self._samples.succeeded(
            due_s,
            sent_s,
            ended_s,
            sentences=len(translations),
            source_tokens=sum(translation.source_tokens for translation in translations),
            target_tokens=sum(translation.target_tokens for translation in translations),
        )
        if self._check is not None:
            self._check(number, translations)

    def _record_error(self, error: grpc.aio.AioRpcError, due_s: float, sent_s: float) -> None:
        self._samples.ended_in_error(
            due_s,
            sent_s,
            self.now_s(),
            code=error.code().name,
            reason=errors.from_rpc_error(error).reason,
            message=error.details() or "",
        )
