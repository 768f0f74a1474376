"""The clients of a Dragoman server, blocking and asyncio, over the same request builder.

A call that fails raises an error of `dragoman.errors`. UNAVAILABLE (no connection, draining, loading) is
tried again by gRPC itself, at most three times with growing, jittered pauses, as long as the deadline allows
and nothing of the answer has arrived; calls are spread over all addresses that the server's name resolves to.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from dragoman.answers import (
    Model,
    Translation,
    TranslationDelta,
    model_of,
    translation_delta_of,
    translation_of,
)
from dragoman.errors import from_rpc_error
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
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}
_CHANNEL_OPTIONS = [
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    # gRPC's own 4 MiB would refuse the answer to many long texts, after the work was done.
    ("grpc.max_receive_message_length", -1),
    # gRPC's own 120 s would leave a server unused for so long after it came back from an outage.
    ("grpc.max_reconnect_backoff_ms", 5_000),
]


def _request(
    texts: str | Sequence[str],
    source_language: str,
    target_language: str,
    model: str,
    max_target_tokens: int | None,
    mean_log_probability: bool,
) -> pb.TranslateTextRequest:
    """Builds the request of both clients and both calls; a single text is a list of one."""
    return pb.TranslateTextRequest(
        contents=[texts] if isinstance(texts, str) else texts,
        source_language_code=source_language,
        target_language_code=target_language,
        model=model,
        options=pb.TranslateOptions(max_target_tokens=max_target_tokens, mean_log_probability=mean_log_probability),
    )


@contextmanager
def _errors_of_dragoman() -> Iterator[None]:
    """Raises the error that the server raised in place of gRPC's."""
    try:
        yield
    except grpc.RpcError as rpc_error:
        raise from_rpc_error(rpc_error) from rpc_error


class _Base:
    """What both clients share: the settings of every call, and the stub."""

    def __init__(self, channel: Any, timeout_s: float, metadata: Mapping[str, str] | None) -> None:
        self._channel = channel
        self._stub = TranslationStub(channel)
        self._timeout_s = timeout_s
        self._metadata = tuple((metadata or {}).items())

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
        metadata: sent with every call, such as `{"authorization": "Bearer ..."}`; keys in lower case.
        credentials: of a TLS channel, from `grpc.ssl_channel_credentials`; plain text without.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        metadata: Mapping[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        if credentials is None:
            channel = grpc.insecure_channel(address, _CHANNEL_OPTIONS)
        else:
            channel = grpc.secure_channel(address, credentials, _CHANNEL_OPTIONS)
        super().__init__(channel, timeout_s, metadata)

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        max_target_tokens: int | None = None,
        mean_log_probability: bool = False,
        timeout_s: float | None = None,
    ) -> list[Translation]:
        """Translates texts of any length; all of them or none.

        Args:
            texts: one text, or several.
            source_language: BCP-47 code such as "en"; may be left out where `model` is given.
            target_language: BCP-47 code such as "de"; may be left out where `model` is given.
            model: the name of a model, from `list_models`; the server chooses by the languages without.
            max_target_tokens: the most tokens to produce for one segment; the model's limit without.
            mean_log_probability: whether the answers say how sure the model was, see `Translation`.
            timeout_s: the deadline of this call, retries included; the client's without.

        Returns:
            One translation for each text, in the same order.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: nothing was sent: a text is no valid Unicode, or a number is negative.
        """
        request = _request(texts, source_language, target_language, model, max_target_tokens, mean_log_probability)
        with _errors_of_dragoman():
            response = self._stub.TranslateText(request, **self._settings(timeout_s))
        return [translation_of(message) for message in response.translations]

    def stream(
        self,
        texts: str | Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        max_target_tokens: int | None = None,
        mean_log_probability: bool = False,
        timeout_s: float | None = None,
    ) -> Iterator[TranslationDelta]:
        """Translates like `translate`, and yields each translation piece by piece while it is decoded.

        The call starts when the first piece is asked for, and is cancelled when the iterator is closed early. Unlike
        `translate` it does not try again by itself where the server is unavailable.

        Args:
            texts: as in `translate`.
            source_language: as in `translate`.
            target_language: as in `translate`.
            model: as in `translate`.
            max_target_tokens: as in `translate`.
            mean_log_probability: as in `translate`.
            timeout_s: as in `translate`; it bounds the whole stream.

        Yields:
            The pieces: those of one text in order, those of different texts interleaved.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = _request(texts, source_language, target_language, model, max_target_tokens, mean_log_probability)
        with _errors_of_dragoman():
            call = self._stub.StreamTranslateText(request, **self._settings(timeout_s))
            try:
                yield from map(translation_delta_of, call)
            finally:
                call.cancel()

    def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """Lists the models of the server, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        with _errors_of_dragoman():
            response = self._stub.ListModels(pb.ListModelsRequest(), **self._settings(timeout_s))
        return [model_of(message) for message in response.models]

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
        metadata: as in `Client`.
        credentials: as in `Client`.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        metadata: Mapping[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        if credentials is None:
            channel = grpc.aio.insecure_channel(address, _CHANNEL_OPTIONS)
        else:
            channel = grpc.aio.secure_channel(address, credentials, _CHANNEL_OPTIONS)
        super().__init__(channel, timeout_s, metadata)

    async def translate(
        self,
        texts: str | Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        max_target_tokens: int | None = None,
        mean_log_probability: bool = False,
        timeout_s: float | None = None,
    ) -> list[Translation]:
        """Translates texts of any length; all of them or none. See `Client.translate`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = _request(texts, source_language, target_language, model, max_target_tokens, mean_log_probability)
        with _errors_of_dragoman():
            response = await self._stub.TranslateText(request, **self._settings(timeout_s))
        return [translation_of(message) for message in response.translations]

    async def stream(
        self,
        texts: str | Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        max_target_tokens: int | None = None,
        mean_log_probability: bool = False,
        timeout_s: float | None = None,
    ) -> AsyncIterator[TranslationDelta]:
        """Translates, and yields each translation piece by piece while it is decoded. See `Client.stream`.

        To leave before the end, wrap the iterator in `contextlib.aclosing`: that cancels the call at once.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = _request(texts, source_language, target_language, model, max_target_tokens, mean_log_probability)
        with _errors_of_dragoman():
            call = self._stub.StreamTranslateText(request, **self._settings(timeout_s))
            try:
                async for message in call:
                    yield translation_delta_of(message)
            finally:
                call.cancel()

    async def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """Lists the models of the server, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        with _errors_of_dragoman():
            response = await self._stub.ListModels(pb.ListModelsRequest(), **self._settings(timeout_s))
        return [model_of(message) for message in response.models]

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
