"""Over HTTP the callers of the fault suite notice what they notice over gRPC: a real listener gives the answers."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.faults import calls
from tests.faults.books import Books, Figures

TEXTS = ["one", "two"]
ANSWER = json.dumps({"translations": [{"translatedText": text.upper()} for text in TEXTS]}).encode()
EVENTS = [
    {"textDelta": "ONE", "result": {"translatedText": "ONE"}},
    {"contentIndex": 1, "textDelta": "TWO", "result": {"translatedText": "TWO"}},
]
OVERLOADED = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "too much",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "OVERLOADED", "domain": "dragoman"}
        ],
    }
}
LENGTH = b"HTTP/1.1 %d OK\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Truth:
    def is_right(self, texts, answers) -> bool:
        return [text.upper() for text in texts] == list(answers)


def whole(body: bytes, status: int = 200) -> bytes:
    return LENGTH % (status, len(body)) + body


def chunks(*events: str) -> bytes:
    return CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(event), event.encode()) for event in events)


def events(*messages: dict) -> bytes:
    return chunks(*(f"data: {json.dumps(message)}\n\n" for message in messages))


class Listener:
    """Gives the same answer to every request, over each of its connections.

    Attributes:
        answer: what it sends; nothing where it is empty.
        connections: how many there have been.
    """

    def __init__(self) -> None:
        self.answer = b""
        self.closes = False
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):  # it may be closed
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as said:
            while line := said.readline():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                if line == b"\r\n":
                    said.read(length)
                    connection.sendall(self.answer)
                    if self.closes:
                        return


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def called(listener) -> Callable[..., Figures]:
    """Makes some calls over one stub, and gives what the books say of them."""

    def make(way: calls.Translate, count: int = 1, **options: float) -> Figures:
        books = Books()
        with calls.connected(listener.address, over_http=True) as stub:
            for _ in range(count):
                calls.call(way, stub, TEXTS, Truth(), books, **options)
        figures = books.figures()
        assert (figures.sent, figures.open) == (count, 0)
        return figures

    return make


def test_right_answers_over_one_connection(listener, called) -> None:
    listener.answer = whole(ANSWER)
    assert called(calls.unary, 3).ok == 3
    assert listener.connections == 1


def test_a_right_stream(listener, called) -> None:
    listener.answer = events(*EVENTS) + b"0\r\n\r\n"
    assert called(calls.stream, 2).ok == 2
    assert listener.connections == 1


def test_wrong_answers(listener, called) -> None:
    listener.answer = whole(ANSWER.replace(b"TWO", b"TOO"))
    assert called(calls.unary).wrong == 1
    listener.answer = events(EVENTS[0], {**EVENTS[1], "textDelta": "TOO"}) + b"0\r\n\r\n"
    assert called(calls.stream).wrong == 1


@pytest.mark.parametrize("way", [calls.unary, calls.stream])
def test_an_error_has_its_reason(listener, called, way) -> None:
    listener.answer = whole(json.dumps(OVERLOADED).encode(), 429)
    assert called(way).failed == {"OVERLOADED": 1}


def test_an_error_in_the_middle_of_a_stream(listener, called) -> None:
    listener.answer = chunks(f"data: {json.dumps(EVENTS[0])}\n\n", f"event: error\ndata: {json.dumps(OVERLOADED)}\n\n")
    assert called(calls.stream).failed == {"OVERLOADED": 1}


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]", b"\xff"])
def test_an_error_that_is_not_clear_is_no_error_of_ours(listener, called, body: bytes) -> None:
    listener.answer = whole(body, 500)
    assert called(calls.unary).failed == {"UNRECOGNIZED": 1}


@pytest.mark.parametrize(
    ("way", "answer"),
    [
        (calls.unary, b""),
        (calls.unary, whole(ANSWER)[:-1]),
        (calls.stream, b""),
        (calls.stream, events(EVENTS[0])),
        (calls.stream, events(EVENTS[0]) + b"0\r\n\r\n"),
    ],
)
def test_an_answer_that_is_cut_off_is_no_answer(listener, called, way, answer: bytes) -> None:
    listener.answer, listener.closes = answer, True
    assert called(way).failed == {"SERVER_UNAVAILABLE": 1}


@pytest.mark.parametrize("way", [calls.unary, calls.stream])
def test_no_answer_is_a_lost_call(called, way) -> None:
    assert called(way, patience_s=0.2).lost == 1


def test_nobody_there_is_tried_again_until_patience_ends(listener) -> None:
    listener.close()
    books = Books()
    with calls.connected(listener.address, over_http=True) as stub:
        calls.call(calls.unary, stub, TEXTS, Truth(), books, retry=True, patience_s=0.3)
    figures = books.figures()
    assert figures.failed.total() + figures.lost == 1
    assert figures.retried["SERVER_UNAVAILABLE"] > 0


@pytest.mark.parametrize("answer", [b"", whole(ANSWER)])
def test_a_call_that_is_cancelled_has_no_answer(listener, answer: bytes) -> None:
    listener.answer = answer
    books = Books()
    with calls.connected(listener.address, over_http=True) as stub:
        call = stub.TranslateText.future(calls.request_of(TEXTS), timeout=30)
        call.cancel()
        books.send()
        calls.enter(lambda: calls.answers_of(call.result()), TEXTS, Truth(), books)
    assert books.figures().failed == {"CANCELLED": 1}
