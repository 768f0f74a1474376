"""Calls without a request, on a real gRPC server."""

import asyncio
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from dragoman import DeadlineExceededError, InvalidRequestError
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from service.rpc import methods
from service.rpc.translation import Translation
from service.wire import SERVICE
from tests.grpc_server import grpc_server
from tests.unit.service.played_engine import PATIENCE_S, PlayedEngine

LIMIT_BYTES = 1000
UNARY = ["TranslateText", "StreamTranslateText", "ListModels"]
CONFIG = pb.BatchTranslateTextRequest(config=pb.BatchTranslateTextConfig(model="en-de")).SerializeToString()
GOOD = pb.TranslateTextRequest(contents=[" "], model="en-de").SerializeToString()


@pytest.fixture
async def channel(played: PlayedEngine) -> AsyncIterator[grpc.aio.Channel]:
    async with (
        grpc_server(Translation(played.handlers, LIMIT_BYTES).add_to) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        yield channel


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
    before = [CONFIG] if "Batch" in method else []
    with pytest.raises(InvalidRequestError, match=f"at most {LIMIT_BYTES} bytes, is {len(message)}"):
        await outcome(channel, method, *before, message)


async def test_a_message_of_just_the_limit_arrives(channel) -> None:
    request = pb.TranslateTextRequest(contents=[" " * (LIMIT_BYTES - 100)], model="en-de")
    request.contents[0] += " " * (LIMIT_BYTES - request.ByteSize())
    message = request.SerializeToString()
    assert len(message) == LIMIT_BYTES
    assert await outcome(channel, "TranslateText", message)


@pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText", "BatchTranslateText"])
async def test_a_request_arrives(channel, method) -> None:
    blank = pb.BatchTranslateTextRequest(contents=[" "]).SerializeToString()
    *_, answer = await outcome(channel, method, *([CONFIG, blank] if "Batch" in method else [GOOD]))
    assert b"en-de" in answer


@pytest.mark.parametrize("method", [*UNARY, "BatchTranslateText"])
@pytest.mark.parametrize("message", [b"\xff", GOOD[:-1], b"\x0a\x01\xff", b"\x0b" * 200])
async def test_broken_bytes_are_an_invalid_request(channel, method, message) -> None:
    if method in ("ListModels", "BatchTranslateText"):
        message = b"\x0b" * 200  # what else is broken depends on the fields
    with pytest.raises(InvalidRequestError, match="broken protobuf"):
        await outcome(channel, method, message)


@pytest.mark.parametrize("method", [*UNARY, "BatchTranslateText"])
@pytest.mark.parametrize("message", [b"\xff", b"\x0b" * 200])
async def test_a_call_that_came_broken_is_counted_and_written_down(channel, played, method, message) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await outcome(channel, method, message)
    [record] = played.records
    assert (record.method, record.reason, record.texts) == (method, "INVALID_REQUEST", 0)
    assert caught.value.request_id == record.request_id
    assert played.count("rejected_total", "INVALID_REQUEST") == 1


@pytest.mark.parametrize("method", UNARY)
async def test_a_call_without_a_message_is_an_invalid_request(channel, method) -> None:
    with pytest.raises(InvalidRequestError, match="without a message"):
        await outcome(channel, method)


@pytest.mark.parametrize("method", UNARY)
async def test_a_message_that_never_comes_is_not_waited_for(channel, monkeypatch, method) -> None:
    monkeypatch.setattr(methods, "ARRIVAL_TIMEOUT_S", 0.05)
    with pytest.raises(DeadlineExceededError, match=r"within 0\.05 s"):
        await outcome(channel, method, ends=False)


async def test_many_calls_at_a_time_each_get_their_own(channel) -> None:
    requests = [
        pb.TranslateTextRequest(contents=[" " * number], model="en-de").SerializeToString() for number in range(100)
    ]
    answers = await asyncio.gather(*(outcome(channel, "TranslateText", request) for request in requests))
    texts = [pb.TranslateTextResponse.FromString(answer).translations[0].translated_text for [answer] in answers]
    assert texts == [" " * number for number in range(100)]
