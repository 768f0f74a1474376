"""What no server of ours says: the endings of calls that something else answers, or nobody."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench.load.calls import NoAnswerError, NoServerError
from bench.load.http_calls import connected, ending_of
from bench.load.samples import Ending
from dragoman.access import Access

OVERLOADED = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "too much",
        "details": [{"@type": "a", "retryDelay": "1s"}, {"@type": "b", "reason": "OVERLOADED"}],
    }
}
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FAILED = b'event: error\ndata: {"error": {"status": "INTERNAL", "message": "a"}}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@asynccontextmanager
async def answering(answer: bytes, heads: list[bytes] | None = None) -> AsyncIterator[str]:
    """A listener that gives one answer to whatever it is sent, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if heads is not None:
            heads.append(head.lower())
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        (json.dumps(OVERLOADED).encode(), Ending("RESOURCE_EXHAUSTED", "OVERLOADED", "too much")),
        (b'{"error": {"status": "NOT_FOUND", "message": "no"}}', Ending("NOT_FOUND", "HTTP_404", "no")),
        (b"<html>", Ending("UNKNOWN", "HTTP_404", "<html>")),
        (b'{"error": "no"}', Ending("UNKNOWN", "HTTP_404", '{"error": "no"}')),
        (b"[]", Ending("UNKNOWN", "HTTP_404", "[]")),
        (b"\xff", Ending("UNKNOWN", "HTTP_404", "\ufffd")),
    ],
)
def test_an_error_is_what_the_server_says_or_else_the_status(body: bytes, ending: Ending) -> None:
    assert ending_of(404, body) == ending


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", "UNAVAILABLE"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{", "UNAVAILABLE"),
        (STREAM + chunk(b'data: {"textDelta": "Gu"}\n\n'), "UNAVAILABLE"),
        (STREAM + chunk(FAILED[:20]) + chunk(FAILED[20:]), "INTERNAL"),
        (b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 2\r\n\r\nno", "UNKNOWN"),
    ],
)
async def test_a_stream_that_is_cut_or_fails_has_no_answer(answer: bytes, code: str) -> None:
    async with answering(answer) as address, connected(address, Access()) as calls:
        [ask] = calls.asks(stream=True)
        with pytest.raises(NoAnswerError) as failed:
            await ask(b"{}", 30.0)
    assert failed.value.ending.code == code


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x00\x00\x1e\x04", "does not speak HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nOK", "is not this server"),
        (b"", "no server answers at"),
    ],
)
async def test_what_is_not_this_server_is_told_in_one_line(answer: bytes, said: str) -> None:
    async with answering(answer) as address, connected(address, Access()) as calls:
        with pytest.raises(NoServerError, match=said) as failed:
            await calls.models()
    assert len(str(failed.value).splitlines()) == 1


async def test_the_server_is_told_the_deadline_and_the_key() -> None:
    heads: list[bytes] = []
    async with answering(b"", heads) as address, connected(address, Access(api_key="secret")) as calls:
        [ask] = calls.asks(stream=False)
        with pytest.raises(NoAnswerError):
            await ask(b"{}", 2.5)
    assert b"connect-timeout-ms: 2500\r\n" in heads[0]
    assert b"authorization: bearer secret\r\n" in heads[0]


async def test_a_streamed_text_may_hold_what_begins_the_data_of_an_event() -> None:
    event = b'data: {"result": {"translatedText": "Die data: hier"}}\n\n'
    async with answering(STREAM + chunk(event) + chunk(b"")) as address, connected(address, Access()) as calls:
        [ask] = calls.asks(stream=True)
        reply = await ask(b"{}", 30.0)
    assert [each.translated_text for each in reply.translations] == ["Die data: hier"]
