"""Calls as the callers of the suite make them: each is checked against the truth and entered into books."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import grpc

from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.faults.books import Books
from tests.faults.http_stub import HttpStub
from tests.faults.truth import MODEL, Truth

_LONG = 10_000  # characters
PATIENCE_S = 30.0  # of a caller: what is not answered by then is lost
_PAUSE_S = 0.05
_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own
    ("grpc.enable_retries", 0),  # ours are counted
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # what connecting may take on a busy machine; lengthens no pause
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.max_receive_message_length", -1),
]

# A call that arrives in the very moment in which a gRPC server stops gets CANCELLED, though nobody cancelled it:
# https://github.com/grpc/grpc/issues/41785
_TRIED_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
# As little as gRPC takes from the network before anybody reads it.
_NO_LOOKAHEAD = [
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 16384),
    ("grpc.http2.max_frame_size", 16384),
]

Stub = TranslationStub | HttpStub
Translate = Callable[[Stub, Sequence[str], float], list[str]]


class MixedUpError(Exception):
    """An answer that contradicts itself."""


@contextmanager
def connected(address: str, *, over_http: bool = False, lookahead: bool = True) -> Iterator[Stub]:
    """A stub with connections of its own.

    Args:
        address: of the server.
        over_http: it is the address of its HTTP port.
        lookahead: over gRPC, take from the network what nobody has read yet.
    """
    if over_http:
        with closing(HttpStub(address)) as stub:
            yield stub
        return
    options = _OPTIONS if lookahead else _OPTIONS + _NO_LOOKAHEAD
    with grpc.insecure_channel(address, options) as channel:
        yield TranslationStub(channel)


def request_of(texts: Sequence[str]) -> pb.TranslateTextRequest:
    """The request to translate these, or none of them; nobody sits and waits for a long one."""
    priority = pb.PRIORITY_BULK if sum(map(len, texts)) > _LONG else pb.PRIORITY_INTERACTIVE
    return pb.TranslateTextRequest(contents=texts, model=MODEL, priority=priority, all_or_nothing=True)


def unary(stub: Stub, texts: Sequence[str], timeout_s: float) -> list[str]:
    """By TranslateText."""
    return answers_of(stub.TranslateText(request_of(texts), timeout=timeout_s))


def answers_of(response: pb.TranslateTextResponse) -> list[str]:
    """The translations in a response."""
    return [translation.translated_text for translation in response.translations]


def stream(stub: Stub, texts: Sequence[str], timeout_s: float) -> list[str]:
    """By StreamTranslateText."""
    return read(stub.StreamTranslateText(request_of(texts), timeout=timeout_s), len(texts))


def read(pieces: Any, count: int) -> list[str]:
    """Put together what a stream of `count` texts sends.

    Raises:
        MixedUpError: the pieces are not what the result says.
    """
    grown, results = [""] * count, [""] * count
    for piece in pieces:
        grown[piece.content_index] += piece.text_delta
        if piece.HasField("result"):
            results[piece.content_index] = piece.result.translated_text
    if grown != results:
        raise MixedUpError("the pieces are not the result")
    return results


def bulk(stub: TranslationStub, texts: Sequence[str], timeout_s: float) -> list[str]:
    """By BatchTranslateText, some texts a message."""
    answers: dict[int, str] = {}
    for message in stub.BatchTranslateText(_messages(texts), timeout=timeout_s):
        for item in message.translations:
            if item.content_index in answers:
                raise MixedUpError("a text was answered twice")
            answers[item.content_index] = item.translation.translated_text
    return [answers.get(index, "") for index in range(len(texts))]


def _messages(texts: Sequence[str]) -> Iterator[pb.BatchTranslateTextRequest]:
    yield pb.BatchTranslateTextRequest(config=pb.BatchTranslateTextConfig(model=MODEL))
    for start in range(0, len(texts), 10):
        yield pb.BatchTranslateTextRequest(contents=texts[start : start + 10])


def enter(result: Callable[[], list[str]], texts: Sequence[str], truth: Truth, books: Books) -> None:
    """Wait for a call that was sent and entered as such, and enter how it ended.

    Args:
        result: gives the answers, or raises what gRPC raises.
        texts: of the call.
        truth: knows what is right.
        books: where it is entered.
    """
    try:
        answers = result()
    except MixedUpError:
        books.answer(False)
    except grpc.FutureCancelledError:
        books.fail(grpc.StatusCode.CANCELLED.name)
    except grpc.RpcError as error:
        enter_error(error, books)
    else:
        books.answer(truth.is_right(texts, answers))


def call(
    translate: Translate,
    stub: Stub,
    texts: Sequence[str],
    truth: Truth,
    books: Books,
    *,
    retry: bool = False,
    patience_s: float = PATIENCE_S,
) -> None:
    """Make one call and enter it.

    Args:
        translate: one of the ways above.
        stub: of the server.
        texts: of the call.
        truth: knows what is right.
        books: where it is entered.
        retry: try again where the server is unavailable, or has stopped in that moment.
        patience_s: until the call is lost, tries included.
    """
    give_up_s = time.monotonic() + patience_s

    def result() -> list[str]:
        while True:
            try:
                return translate(stub, texts, max(0.001, give_up_s - time.monotonic()))
            except grpc.RpcError as error:
                if not retry or error.code() not in _TRIED_AGAIN or time.monotonic() > give_up_s:
                    raise
                books.retry(reason_of(error))
                time.sleep(_PAUSE_S)

    books.send()
    enter(result, texts, truth, books)


def enter_error(error: grpc.RpcError, books: Books) -> None:
    """Enter how a call failed; what only its own deadline has ended was lost."""
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        books.lose()
    else:
        books.fail(reason_of(error))


def reason_of(error: grpc.RpcError) -> str:
    """The reason in the ErrorInfo, or what stands for it where no server spoke."""
    return from_rpc_error(error).reason
