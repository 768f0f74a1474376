"""Calls without a request, on a real gRPC server."""

import asyncio
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from dragoman import DeadlineExceededError, InvalidRequestError
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServicer, add_TranslationServicer_to_server
from service.rpc import request_parsing
from service.rpc.request_parsing import RequestParsing, parsed

PATIENCE_S = 60
LIMIT_BYTES = 1000
SERVICE = "dragoman.v1.Translation"
UNARY = ["TranslateText", "StreamTranslateText", "ListModels"]
GOOD = pb.TranslateTextRequest(contents=["a"], model="m").SerializeToString()


class Echo(TranslationServicer):
    """Says what was wrong with the request, as the status; or answers with its texts."""

    async def _texts(self, request, context) -> list[str]:
        try:
            return list(getattr(parsed(request), "contents", []))
        except (InvalidRequestError, DeadlineExceededError) as error:
            await context.abort(error.code, error.message)
            raise

    async def TranslateText(self, request, context) -> pb.TranslateTextResponse:
        texts = await self._texts(request, context)
        return pb.TranslateTextResponse(translations=[pb.TranslatedText(translated_text=text) for text in texts])

    async def StreamTranslateText(self, request, context) -> None:
        for text in await self._texts(request, context):
            await context.write(pb.StreamTranslateTextResponse(text_delta=text))

    async def BatchTranslateText(self, requests, context) -> None:
        async for request in requests:
            for text in await self._texts(request, context):
                await context.write(pb.BatchTranslateTextResponse(request_id=text))

    async def ListModels(self, request, context) -> pb.ListModelsResponse:
        await self._texts(request, context)
        return pb.ListModelsResponse()


@pytest.fixture
async def channel() -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(interceptors=[RequestParsing(SERVICE, LIMIT_BYTES)])
    add_TranslationServicer_to_server(Echo(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(None)


async def outcome(channel: grpc.aio.Channel, method: str, *messages: bytes, ends: bool = True) -> list[bytes]:
    """Sends messages, and gives the answers or raises the error."""
    call = channel.stream_stream(f"/{SERVICE}/{method}")(timeout=PATIENCE_S)
    for message in messages:
        await call.write(message)
    if ends:
        await call.done_writing()
    try:
        return [answer async for answer in call]
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


@pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText", "BatchTranslateText"])
async def test_a_message_above_the_limit_is_told_the_limit_and_its_own_size(channel, method) -> None:
    kind = pb.BatchTranslateTextRequest if "Batch" in method else pb.TranslateTextRequest
    message = kind(contents=["a" * LIMIT_BYTES]).SerializeToString()
    with pytest.raises(InvalidRequestError, match=f"at most {LIMIT_BYTES} bytes, is {len(message)}"):
        await outcome(channel, method, message)


async def test_a_message_of_just_the_limit_arrives(channel) -> None:
    framing = len(pb.TranslateTextRequest(contents=["a" * LIMIT_BYTES]).SerializeToString()) - LIMIT_BYTES
    message = pb.TranslateTextRequest(contents=["a" * (LIMIT_BYTES - framing)]).SerializeToString()
    assert len(message) == LIMIT_BYTES
    assert await outcome(channel, "TranslateText", message)


@pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText", "BatchTranslateText"])
async def test_a_request_arrives(channel, method) -> None:
    message = pb.BatchTranslateTextRequest(contents=["a"]).SerializeToString() if "Batch" in method else GOOD
    [answer] = await outcome(channel, method, message)
    assert b"a" in answer


@pytest.mark.parametrize("method", [*UNARY, "BatchTranslateText"])
@pytest.mark.parametrize("message", [b"\xff", GOOD[:-1], b"\x0a\x01\xff", b"\x0b" * 200])
async def test_broken_bytes_are_an_invalid_request(channel, method, message) -> None:
    if method in ("ListModels", "BatchTranslateText"):
        message = b"\x0b" * 200  # what else is broken depends on the fields
    with pytest.raises(InvalidRequestError, match="broken protobuf"):
        await outcome(channel, method, message)


@pytest.mark.parametrize("method", UNARY)
async def test_a_call_without_a_message_is_an_invalid_request(channel, method) -> None:
    with pytest.raises(InvalidRequestError, match="without a message"):
        await outcome(channel, method)


@pytest.mark.parametrize("method", UNARY)
async def test_a_message_that_never_comes_is_not_waited_for(channel, monkeypatch, method) -> None:
    monkeypatch.setattr(request_parsing, "ARRIVAL_TIMEOUT_S", 0.05)
    with pytest.raises(DeadlineExceededError, match=r"within 0\.05 s"):
        await outcome(channel, method, ends=False)


async def test_other_services_are_left_alone() -> None:
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    async def found(details):
        return handler

    class Details:
        method = "/grpc.health.v1.Health/Check"

    assert await RequestParsing(SERVICE, LIMIT_BYTES).intercept_service(found, Details()) is handler


async def test_many_calls_at_a_time_each_get_their_own(channel) -> None:
    requests = [pb.TranslateTextRequest(contents=[str(number)]).SerializeToString() for number in range(100)]
    answers = await asyncio.gather(*(outcome(channel, "TranslateText", request) for request in requests))
    texts = [pb.TranslateTextResponse.FromString(answer).translations[0].translated_text for [answer] in answers]
    assert texts == [str(number) for number in range(100)]
