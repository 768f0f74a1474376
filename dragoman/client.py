"""The clients of a Dragoman server, blocking and asyncio, over the same request builder.

A call that fails raises an error of `dragoman.errors`. UNAVAILABLE (no connection, draining, loading) is
tried again by gRPC itself, at most three times with growing, jittered pauses, as long as the deadline allows
and nothing of the answer has arrived; calls are spread over all addresses that the server's name resolves to. An
overloaded server is not asked again: whoever wants to waits for the `retry_delay_s` of the error, and longer each time.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
import grpc.aio

from dragoman.access import Access
from dragoman.answers import (
    BatchTranslation,
    Model,
    Translation,
    TranslationDelta,
    model_of,
    next_page_of,
    translation_delta_of,
    translation_of,
)
from dragoman.errors import DragomanError, from_rpc_error
from dragoman.feed import AsyncFeed, Feed
from dragoman.many import Patience, lost_call
from dragoman.options import Options, config_of, request_of
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

DEFAULT_ADDRESS = "127.0.0.1:50051"
DEFAULT_TIMEOUT_S = 60.0

_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            # Not the stream: gRPC has been seen to wait for ever where the server of a retried stream died.
            "name": [
                {"service": "dragoman.v1.Translation", "method": "TranslateText"},
                {"service": "dragoman.v1.Translation", "method": "ListModels"},
            ],
            # Overload is not among the statuses (it is RESOURCE_EXHAUSTED), so retries cannot feed it. gRPC
            # jitters each pause, so that clients do not come back in step.
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 3,
                # gRPC answers CANCELLED to a call that arrives as a server stops (grpc/grpc#41785); what the caller
                # itself cancels is not tried again.
                "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
            },
        }
    ],
}
_CHANNEL_OPTIONS = [
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    # A server may be set to send larger messages than gRPC's own 4 MiB.
    ("grpc.max_receive_message_length", -1),
    # gRPC's own 120 s would leave a server unused for so long after it came back from an outage.
    ("grpc.max_reconnect_backoff_ms", 5_000),
]


@contextmanager
def _errors_of_dragoman() -> Iterator[None]:
    """Raises the error that the server raised in place of gRPC's."""
    try:
        yield
    except grpc.RpcError as rpc_error:
        raise from_rpc_error(rpc_error) from rpc_error


class _Base:
    """What both clients share: the settings of every call, and the stub."""

    def __init__(self, channel: Any, timeout_s: float, api_key: str | None, metadata: Mapping[str, str] | None) -> None:
        self._channel = channel
        self._stub = TranslationStub(channel)
        self._timeout_s = timeout_s
        self._metadata = (*Access(api_key).metadata, *(metadata or {}).items())

    def _settings(self, timeout_s: float | None) -> dict[str, Any]:
        """Gives the keyword arguments of a call."""
        return {"timeout": self._timeout_s if timeout_s is None else timeout_s, "metadata": self._metadata}


class Client(_Base):
    """A blocking client; one is enough for a process, and safe to use from many threads.

        with Client("localhost:50051") as client:
            [translation] = client.translate("Good morning.", model="en-de")

    Args:
        address: `host:port`, or any gRPC target such as `dns:///host:port` or `unix:/path`.
        timeout_s: the deadline of a call, retries included, unless the call has its own.
        api_key: sent with every call, as `authorization: Bearer`; give it only to servers with TLS.
        metadata: sent with every call; keys in lower case.
        credentials: of a TLS channel, from `grpc.ssl_channel_credentials`; plain text without.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        api_key: str | None = None,
        metadata: Mapping[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        if credentials is None:
            channel = grpc.insecure_channel(address, _CHANNEL_OPTIONS)
        else:
            channel = grpc.secure_channel(address, credentials, _CHANNEL_OPTIONS)
        super().__init__(channel, timeout_s, api_key, metadata)

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> list[Translation]:
        """Translates texts of any length.

        Args:
            texts: one text, or several; together at most what a server answers with one message, by default 1,398,101
                bytes (`translate_many` takes any number).
            all_or_nothing: whether a text that cannot be translated raises its error; else it has it in the `error`
                of its translation, and the others are translated.
            timeout_s: the deadline of this call, retries included; the client's without.
            **options: languages, model and more, see `dragoman.options.Options`.

        Returns:
            One translation for each text, in the same order.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: nothing was sent: a text is no valid Unicode, a number is negative, or the priority is none.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        with _errors_of_dragoman():
            response = self._stub.TranslateText(request, **self._settings(timeout_s))
        return [translation_of(message) for message in response.translations]

    def stream(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Iterator[TranslationDelta]:
        """Translates like `translate`, and yields each translation piece by piece while it is decoded.

        The call starts when the first piece is asked for, and is cancelled when the iterator is closed early. Unlike
        `translate` it does not try again by itself where the server is unavailable.

        Args:
            texts: as in `translate`.
            all_or_nothing: as in `translate`; the error then comes in the last piece of the text.
            timeout_s: as in `translate`; it bounds the whole stream.
            **options: as in `translate`.

        Yields:
            The pieces: those of one text in order, those of different texts interleaved.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        with _errors_of_dragoman():
            call = self._stub.StreamTranslateText(request, **self._settings(timeout_s))
            try:
                yield from map(translation_delta_of, call)
            finally:
                call.cancel()

    def translate_many(
        self,
        texts: Iterable[str],
        *,
        in_order: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Iterator[BatchTranslation]:
        """Translates any number of texts over one call, while they come and without holding them all.

            for index, translation in client.translate_many(map(str.strip, open("sentences.txt")), model="en-de"):
                ...

        The iterable is read as answers are taken: at most some two thousand texts are sent and not answered. It is read
        on a thread of its own, so it may wait for its texts.

        Each text is answered exactly once. One that cannot be translated has an `error`, and raises nothing. Where
        the server drains or is lost, the texts that it left unanswered are sent again over a new call, to another
        server if the address has several; four calls in a row without an answer end it. Whatever is raised, every text
        that was yielded is done: after n answers in order, `itertools.islice(texts, n, None)` is what is left.

        Args:
            texts: any number of them; a string is one.
            in_order: whether the answers come in the order of the texts; else each comes as soon as it is ready.
            timeout_s: the deadline of the whole; none without.
            **options: as in `translate`; the priority is "bulk" without.

        Yields:
            Each text's place in the iterable, and its translation.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: a text is no valid Unicode, or an option is out of range.
            Exception: what the iterable raised, once the texts before are answered.
        """
        first = pb.BatchTranslateTextRequest(config=config_of(in_order=in_order, **options))
        patience, feed = Patience(timeout_s), Feed(texts)
        pause_s: float | None = 0.0
        try:
            while pause_s is not None:
                time.sleep(pause_s)
                messages = chain([first], feed.messages())
                call = self._stub.BatchTranslateText(messages, timeout=patience.left_s, metadata=self._metadata)
                try:
                    with _errors_of_dragoman():
                        for message in call:
                            patience.answered()
                            yield from feed.receive(message)
                    pause_s = None
                except DragomanError as error:
                    lost = lost_call(error)
                    pause_s = None if feed.done else patience.pause_s(lost)
                finally:
                    call.cancel()
            feed.check_end()
        finally:
            feed.close()

    def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """Lists the models of the server, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        models: list[Model] = []
        request: pb.ListModelsRequest | None = pb.ListModelsRequest()
        with _errors_of_dragoman():
            while request is not None:
                response = self._stub.ListModels(request, **self._settings(timeout_s))
                models += map(model_of, response.models)
                request = next_page_of(response)
        return models

    def close(self) -> None:
        """Closes the connections; calls that run are cancelled."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_Base):
    """The asyncio client; use it on the event loop on which it was made.

        async with AsyncClient("localhost:50051") as client:
            [translation] = await client.translate("Good morning.", model="en-de")

    Args:
        address: as in `Client`.
        timeout_s: as in `Client`.
        api_key: as in `Client`.
        metadata: as in `Client`.
        credentials: as in `Client`.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        api_key: str | None = None,
        metadata: Mapping[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        if credentials is None:
            channel = grpc.aio.insecure_channel(address, _CHANNEL_OPTIONS)
        else:
            channel = grpc.aio.secure_channel(address, credentials, _CHANNEL_OPTIONS)
        super().__init__(channel, timeout_s, api_key, metadata)

    async def translate(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> list[Translation]:
        """Translates texts of any length. See `Client.translate`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        with _errors_of_dragoman():
            response = await self._stub.TranslateText(request, **self._settings(timeout_s))
        return [translation_of(message) for message in response.translations]

    async def stream(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> AsyncIterator[TranslationDelta]:
        """Translates, and yields each translation piece by piece while it is decoded. See `Client.stream`.

        To leave before the end, wrap the iterator in `contextlib.aclosing`: that cancels the call at once.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        with _errors_of_dragoman():
            call = self._stub.StreamTranslateText(request, **self._settings(timeout_s))
            try:
                async for message in call:
                    yield translation_delta_of(message)
            finally:
                call.cancel()

    async def translate_many(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        *,
        in_order: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> AsyncIterator[BatchTranslation]:
        """Translates any number of texts over one call, while they come. See `Client.translate_many`.

        The texts may come from a plain iterable, which must not block, or from an asynchronous one. To leave before the
        end, wrap the iterator in `contextlib.aclosing`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: a text is no valid Unicode, or an option is out of range.
            Exception: what the iterable raised, once the texts before are answered.
        """
        first = pb.BatchTranslateTextRequest(config=config_of(in_order=in_order, **options))
        patience, feed = Patience(timeout_s), AsyncFeed(texts)
        pause_s: float | None = 0.0
        try:
            while pause_s is not None:
                await asyncio.sleep(pause_s)
                call = self._stub.BatchTranslateText(timeout=patience.left_s, metadata=self._metadata)
                sending = asyncio.create_task(feed.send(call, first))
                try:
                    with _errors_of_dragoman():
                        async for message in call:
                            patience.answered()
                            for answer in feed.receive(message):
                                yield answer
                    pause_s = None
                except DragomanError as error:
                    lost = lost_call(error)
                    pause_s = None if feed.done else patience.pause_s(lost)
                finally:
                    call.cancel()
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
            feed.check_end()
        finally:
            await feed.close()

    async def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """Lists the models of the server, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        models: list[Model] = []
        request: pb.ListModelsRequest | None = pb.ListModelsRequest()
        with _errors_of_dragoman():
            while request is not None:
                response = await self._stub.ListModels(request, **self._settings(timeout_s))
                models += map(model_of, response.models)
                request = next_page_of(response)
        return models

    async def close(self) -> None:
        """Closes the connections; calls that run are cancelled."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
