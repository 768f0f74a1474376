"""Calls of a load over gRPC: what goes over the wire was serialized before the load."""

from collections.abc import Callable, Sequence

import grpc
import grpc.aio

from bench.load.calls import Ask, NoAnswerError, Reply, StreamedReply
from bench.load.samples import Ending
from dragoman import errors
from dragoman.v1 import translation_pb2, translation_pb2_grpc

TRANSLATE_TEXT = "/dragoman.v1.Translation/TranslateText"
STREAM_TRANSLATE_TEXT = "/dragoman.v1.Translation/StreamTranslateText"

Metadata = Sequence[tuple[str, str]]


class GrpcCalls:
    """Calls over channels; the methods are those of `bench.load.calls.Calls`."""

    def __init__(self, channels: Sequence[grpc.aio.Channel], metadata: Metadata = ()) -> None:
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
        way = streamed if stream else unary
        return [way(channel, self._metadata) for channel in self._channels]

    def encoded(self, request: bytes) -> bytes:
        return request


def unary(channel: grpc.aio.Channel, metadata: Metadata = ()) -> Ask:
    """Ask for all translations in one answer."""
    call = channel.unary_unary(TRANSLATE_TEXT)  # without serializers a call takes and gives bytes

    async def ask(request: bytes, timeout_s: float, now_s: Callable[[], float]) -> Reply:
        try:
            answer = await call(request, timeout=timeout_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise _no_answer(error) from error
        return Reply(translation_pb2.TranslateTextResponse.FromString(answer).translations)

    return ask


def streamed(channel: grpc.aio.Channel, metadata: Metadata = ()) -> Ask:
    """Make calls whose translations come piece by piece."""
    call = channel.unary_stream(STREAM_TRANSLATE_TEXT)

    async def ask(request: bytes, timeout_s: float, now_s: Callable[[], float]) -> Reply:
        reply = StreamedReply(now_s)
        try:
            async for message in call(request, timeout=timeout_s, metadata=metadata):
                piece = translation_pb2.StreamTranslateTextResponse.FromString(message)
                if piece.HasField("result"):
                    reply.add_result(piece.content_index, piece.result)
                if piece.text_delta:
                    reply.add_text(piece.content_index)
        except grpc.aio.AioRpcError as error:
            raise _no_answer(error) from error
        return reply.whole()

    return ask


def _no_answer(error: grpc.aio.AioRpcError) -> NoAnswerError:
    return NoAnswerError(Ending(error.code().name, errors.from_rpc_error(error).reason, error.details() or ""))
