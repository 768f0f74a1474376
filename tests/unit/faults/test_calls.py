"""The callers of the fault suite notice what they are there to notice: a real gRPC server gives the answers."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc
from tests.faults import calls
from tests.faults.books import Books, Figures
from tests.faults.proxy import Proxy

TEXTS = ["one", "two"]


class Truth:
    def is_right(self, texts, answers) -> bool:
        return [text.upper() for text in texts] == list(answers)


class Server(translation_pb2_grpc.TranslationServicer):
    """Translates into capitals, unless it is told otherwise."""

    def __init__(self) -> None:
        self.translate: Callable[[str], str] = str.upper
        self.delta: Callable[[str], str] = str.upper
        self.fail: Callable[[grpc.ServicerContext], None] = lambda context: None

    def TranslateText(self, request, context):
        self.fail(context)
        return pb.TranslateTextResponse(translations=map(self._translated, request.contents))

    def StreamTranslateText(self, request, context):
        self.fail(context)
        for index, text in enumerate(request.contents):
            yield pb.StreamTranslateTextResponse(content_index=index, text_delta=self.delta(text))
            yield pb.StreamTranslateTextResponse(content_index=index, result=self._translated(text))

    def BatchTranslateText(self, requests, context):
        self.fail(context)
        texts = [text for message in requests for text in message.contents]
        for index, text in reversed(list(enumerate(texts))):
            item = pb.BatchTranslation(content_index=index, translation=self._translated(text))
            yield pb.BatchTranslateTextResponse(translations=[item])

    def _translated(self, text: str) -> pb.TranslatedText:
        return pb.TranslatedText(translated_text=self.translate(text))


@pytest.fixture
def servicer() -> Server:
    return Server()


@pytest.fixture
def address(servicer: Server) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    translation_pb2_grpc.add_TranslationServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture
def stub(address: str) -> Iterator[translation_pb2_grpc.TranslationStub]:
    with calls.connected(address) as stub:
        yield stub


def called(stub, way: calls.Translate, **options) -> Figures:
    books = Books()
    calls.call(way, stub, TEXTS, Truth(), books, **options)
    figures = books.figures()
    assert (figures.sent, figures.open) == (1, 0)
    return figures


def test_a_connection_that_is_slow_to_come_is_waited_for(address) -> None:
    with Proxy(address) as proxy, calls.connected(proxy.address) as stub:
        proxy.freeze()
        threading.Timer(0.4, proxy.go_on).start()
        assert called(stub, calls.unary).ok == 1


WAYS = pytest.mark.parametrize("way", [calls.unary, calls.stream, calls.bulk])


@WAYS
def test_a_right_answer(stub, way) -> None:
    assert called(stub, way).ok == 1


@WAYS
def test_a_wrong_answer(stub, servicer, way) -> None:
    servicer.translate = servicer.delta = lambda text: text.upper().replace("TWO", "TOO")
    assert called(stub, way).wrong == 1


def test_pieces_that_are_not_the_result(stub, servicer) -> None:
    servicer.delta = str.lower
    assert called(stub, calls.stream).wrong == 1


@WAYS
def test_an_error(stub, servicer, way) -> None:
    servicer.fail = lambda context: context.abort(grpc.StatusCode.INTERNAL, "")
    assert called(stub, way).failed == {"INTERNAL": 1}


@WAYS
def test_no_answer(stub, servicer, way) -> None:
    over = threading.Event()
    servicer.fail = lambda context: over.wait(60)
    try:
        assert called(stub, way, patience_s=0.2).lost == 1
    finally:
        over.set()


def test_who_tries_again_gets_it_and_the_tries_are_counted(stub, servicer) -> None:
    left = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED]

    def fail(context: grpc.ServicerContext) -> None:
        if left:
            context.abort(left.pop(), "")

    servicer.fail = fail
    figures = called(stub, calls.unary, retry=True)
    assert figures.ok == 1
    assert figures.retried == {"SERVER_UNAVAILABLE": 1, "CANCELLED": 1}


def test_what_is_not_retried_fails(stub, servicer) -> None:
    servicer.fail = lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, "")
    assert called(stub, calls.unary).failed == {"SERVER_UNAVAILABLE": 1}
