"""Sends drawn calls to a server over real sockets, and judges how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from dragoman.v1 import translation_pb2 as pb
from tests.fuzz.calls import Call

# A call that takes longer hangs: a machine may be busy, but every text here is short.
PATIENCE_S = 120.0
_OURS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class Sender:
    """Channels to one server, to be used from many threads, and what came of the calls so far.

    They block: gRPC's asyncio client reports INTERNAL of its own where a server ends a call before it has read all.

    Attributes:
        outcomes: how many calls of each method ended with each code.
    """

    def __init__(self, channels: Sequence[grpc.Channel]) -> None:
        self._channels = channels
        self._numbers = count()
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def send(self, call: Call) -> None:
        """Makes a call.

        Raises:
            AssertionError: the server did not answer as it should.
        """
        channel = self._channels[next(self._numbers) % len(self._channels)]
        # Bytes in and out, and a stream both ways: on the wire that is what calls of every kind are.
        rpc = channel.stream_stream(f"/dragoman.v1.Translation/{call.method}")(iter(call.messages), timeout=PATIENCE_S)
        answers: list[bytes] = []
        with suppress(grpc.RpcError):
            answers.extend(rpc)
        code = rpc.code()
        self.outcomes[call.method, code.name] += 1
        if code is grpc.StatusCode.OK:
            _check_answers(call, answers)
        elif code is grpc.StatusCode.UNIMPLEMENTED:
            assert call.method == "BatchTranslateText", call
        else:
            assert code in _OURS, (code, rpc.details(), call)
            _check_error(rpc.trailing_metadata(), call)


@contextmanager
def sending(address: str, connections: int = 4) -> Iterator[Sender]:
    """Opens connections of their own (gRPC would share one)."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    with ExitStack() as stack:
        yield Sender([stack.enter_context(grpc.insecure_channel(address, options)) for _ in range(connections)])


def _check_answers(call: Call, answers: list[bytes]) -> None:
    """An answer has a translation or a score for each text of a request, whose bytes must have been one."""
    if call.method == "TranslateText":
        [answer] = answers
        request = pb.TranslateTextRequest.FromString(call.messages[0])
        translations = pb.TranslateTextResponse.FromString(answer).translations
        assert len(translations) == len(request.contents), call
    elif call.method == "StreamTranslateText":
        request = pb.TranslateTextRequest.FromString(call.messages[0])
        messages = [pb.StreamTranslateTextResponse.FromString(answer) for answer in answers]
        results = sorted(message.content_index for message in messages if message.HasField("result"))
        assert results == list(range(len(request.contents))), call
    elif call.method == "ScoreText":
        [answer] = answers
        pairs = pb.ScoreTextRequest.FromString(call.messages[0]).pairs
        assert len(pb.ScoreTextResponse.FromString(answer).scores) == len(pairs), call
    elif call.method == "ListModels":
        [answer] = answers
        page = pb.ListModelsResponse.FromString(answer)
        expected = ["en-de"] if pb.ListModelsRequest.FromString(call.messages[0]).page_token < "en-de" else []
        assert ([model.name for model in page.models], page.next_page_token) == (expected, ""), call
    else:
        requests = [pb.BatchTranslateTextRequest.FromString(message) for message in call.messages]
        responses = [pb.BatchTranslateTextResponse.FromString(answer) for answer in answers]
        numbers = sorted(item.content_index for response in responses for item in response.translations)
        assert numbers == list(range(sum(len(request.contents) for request in requests))), call


def _check_error(trailers: Any, call: Call) -> None:
    """A refusal has exactly one ErrorInfo."""
    [packed] = [value for key, value in trailers if key == "grpc-status-details-bin"] or [b""]
    try:
        status = status_pb2.Status.FromString(packed)
    except DecodeError as error:
        raise AssertionError(call) from error
    infos = [detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
    assert len(infos) == 1, (status, call)
