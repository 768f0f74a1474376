"""Calls of a load over gRPC: what goes over the wire was serialized before the load."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import grpc
import grpc.aio

from bench.load.calls import CONNECT_TIMEOUT_S, Ask, NoAnswerError, NoServerError, Reply
from bench.load.samples import Ending
from dragoman import errors
from dragoman.access import Access
from dragoman.v1 import translation_pb2, translation_pb2_grpc

# One HTTP/2 connection is one thread's work in gRPC: a few keep the client from being what is measured.
CHANNELS: Final = 4

_SERVICE: Final = "/dragoman.v1.Translation/"
_OPTIONS: Final = [
    # Without its own pool every channel to one address would be the same connection.
    ("grpc.use_local_subchannel_pool", 1),
    # One request is one attempt: a retry that nobody sees would hide errors.
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", -1),
]


@asynccontextmanager
async def connected(address: str, count: int = CHANNELS, access: Access | None = None) -> AsyncIterator["GrpcCalls"]:
    """Make calls for the time of the block, over a number of connections, once all of them are there."""
    access = access or Access()
    credentials = access.credentials()
    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(_channel(address, credentials)) for _ in range(count)]
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.gather(*(channel.channel_ready() for channel in channels))
        except TimeoutError as error:
            raise NoServerError(f"no server answers at {address}") from error
        yield GrpcCalls(channels, access.metadata)


def _channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    return grpc.aio.secure_channel(address, credentials, options=_OPTIONS)


class GrpcCalls:
    """Calls over channels; the methods are those of `bench.load.calls.Calls`."""

    def __init__(self, channels: Sequence[grpc.aio.Channel], metadata: Sequence[tuple[str, str]]) -> None:
        self._channels = channels
        self._metadata = metadata

    async def models(self) -> list[translation_pb2.Model]:
        stub = translation_pb2_grpc.TranslationStub(self._channels[0])
        try:
            answer = await stub.ListModels(translation_pb2.ListModelsRequest(), metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise _no_answer(error) from error
        return list(answer.models)

    def asks(self, *, stream: bool) -> list[Ask]:
        # Without serializers a call takes and gives bytes.
        if stream:
            calls = [channel.unary_stream(f"{_SERVICE}StreamTranslateText") for channel in self._channels]
            return [partial(_streamed, partial(call, metadata=self._metadata)) for call in calls]
        calls = [channel.unary_unary(f"{_SERVICE}TranslateText") for channel in self._channels]
        return [partial(_unary, partial(call, metadata=self._metadata)) for call in calls]

    def encoded(self, request: bytes) -> bytes:
        return request


async def _unary(call: Callable[..., Awaitable[bytes]], request: bytes, timeout_s: float) -> Reply:
    """Ask for all translations in one answer."""
    try:
        answer = await call(request, timeout=timeout_s)
    except grpc.aio.AioRpcError as error:
        raise _no_answer(error) from error
    return Reply(translation_pb2.TranslateTextResponse.FromString(answer).translations)


async def _streamed(call: Callable[..., AsyncIterable[bytes]], request: bytes, timeout_s: float) -> Reply:
    """Ask for translations that come piece by piece."""
    reply = Reply()
    try:
        async for message in call(request, timeout=timeout_s):
            piece = translation_pb2.StreamTranslateTextResponse.FromString(message)
            if piece.HasField("result"):
                reply.add_result(piece.content_index, piece.result)
            if piece.text_delta:
                reply.add_text(piece.content_index)
    except grpc.aio.AioRpcError as error:
        raise _no_answer(error) from error
    return reply


def _no_answer(error: grpc.aio.AioRpcError) -> NoAnswerError:
    return NoAnswerError(Ending(error.code().name, errors.from_rpc_error(error).reason, error.details() or ""))
