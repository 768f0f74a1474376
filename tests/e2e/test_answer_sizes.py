"""Clients with the defaults of gRPC, which take messages of 4 MiB, against a real server."""

import grpc
import pytest

from dragoman.errors import InvalidRequestError, from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

PATIENCE_S = 120
LIMIT = 4_194_304 // 3
# Seven of these are more than a message may have, and come back as they are: without words, nothing is decoded.
BLANKS = [" " * 1_000_000 + "\n" * number for number in range(7)]


@pytest.fixture
def stub(server):
    with grpc.insecure_channel(server.address) as channel:
        yield TranslationStub(channel)


def test_a_call_that_is_answered_at_once_takes_what_its_answer_has_room_for(stub) -> None:
    fits = pb.TranslateTextRequest(contents=[" " * 1_000_000, " " * (LIMIT - 1_000_000)], model="en-de")
    answer = stub.TranslateText(fits, timeout=PATIENCE_S)
    assert [each.translated_text for each in answer.translations] == list(fits.contents)
    with pytest.raises(grpc.RpcError) as caught:
        stub.TranslateText(pb.TranslateTextRequest(contents=BLANKS, model="en-de"), timeout=PATIENCE_S)
    error = from_rpc_error(caught.value)
    assert type(error) is InvalidRequestError  # and not gRPC's own RESOURCE_EXHAUSTED, after the work
    assert f"at most {LIMIT} bytes together, are {sum(map(len, BLANKS))}" in error.message


def test_a_stream_takes_more_and_no_message_is_too_large(stub) -> None:
    request = pb.TranslateTextRequest(contents=BLANKS, model="en-de")
    deltas = [""] * len(BLANKS)
    results = {}
    for message in stub.StreamTranslateText(request, timeout=PATIENCE_S):
        deltas[message.content_index] += message.text_delta
        if message.HasField("result"):
            results[message.content_index] = message.result.translated_text
    assert deltas == BLANKS == [results[index] for index in range(len(BLANKS))]


@pytest.mark.parametrize("in_order", [False, True])
def test_a_batch_takes_more_and_no_message_is_too_large(stub, in_order) -> None:
    config = pb.BatchTranslateTextConfig(model="en-de", in_order=in_order)
    first = pb.BatchTranslateTextRequest(config=config)
    requests = iter([first, pb.BatchTranslateTextRequest(contents=BLANKS)])
    answers = [
        answer for message in stub.BatchTranslateText(requests, timeout=PATIENCE_S) for answer in message.translations
    ]
    assert {each.content_index: each.translation.translated_text for each in answers} == dict(enumerate(BLANKS))
