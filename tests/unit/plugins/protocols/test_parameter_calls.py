"""Who calls by a protocol whose parameters may hold the key, and how much of a body is read before that is known."""

import asyncio
import json
import time
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from dragoman.errors import InvalidRequestError, UnauthenticatedError
from plugins.http import urlencoded
from plugins.http.calls import Calls
from plugins.http.forwarded import TrustedProxies
from plugins.protocols import form
from plugins.protocols.parameter_calls import KEY_BYTES, ParameterCalls, in_own_names
from service.handlers.validation import OTHERS_TAKE_MORE
from service.wire import CallProtocol
from tests.unit.plugins.http.keyed import KEY, NAME, keyed
from tests.unit.service.played_engine import PlayedEngine

TEXT = "good morning " * 10_000
PIECE = 1_000


def as_form(*fields: tuple[str, str]) -> tuple[str, bytes]:
    return urlencoded.KIND, urlencode(fields).encode()


def as_json(*fields: tuple[str, str]) -> tuple[str, bytes]:
    return "application/json; charset=utf-8", json.dumps(dict(fields)).encode()


def as_parts(*fields: tuple[str, str]) -> tuple[str, bytes]:
    part = '--x\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    return "multipart/form-data; boundary=x", ("".join(part.format(*field) for field in fields) + "--x--\r\n").encode()


Write = Callable[..., tuple[str, bytes]]
every_kind = pytest.mark.parametrize("write", [as_form, as_json, as_parts])


class Sent:
    """A request whose body comes in pieces, and which counts those that were taken."""

    def __init__(self, kind: str, body: bytes, query: str = "", **headers: str) -> None:
        self.pieces = [body[begin : begin + PIECE] for begin in range(0, len(body), PIECE)]
        self.taken = 0
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/translate",
            "query_string": query.encode(),
            "headers": [
                (name.replace("_", "-").encode(), value.encode())
                for name, value in {"content-type": kind, **headers}.items()
            ],
            "client": ("192.0.2.1", 40_000),
            "state": {"request_id": "an-id"},
        }
        self.request = Request(scope, self._receive)

    async def _receive(self) -> dict[str, object]:
        piece = self.pieces[self.taken]
        self.taken += 1
        return {"type": "http.request", "body": piece, "more_body": self.taken < len(self.pieces)}


@pytest.fixture
def calls(played: PlayedEngine) -> ParameterCalls:
    """Calls of which each needs the key."""
    return ParameterCalls(Calls(keyed(played), 1_000_000, TrustedProxies([])), CallProtocol.LIBRETRANSLATE, "api_key")


async def asked(calls: ParameterCalls, sent: Sent) -> tuple[str, str]:
    """Gives the text and the name of the caller."""
    given, context = await calls.read("TranslateText", sent.request, lambda given: given)
    return form.text_of(given, "q"), context.caller.name


@every_kind
@pytest.mark.parametrize("key", [None, "dragoman_other"])
async def test_of_a_body_of_nobody_only_the_beginning_is_read(calls, played, write: Write, key) -> None:
    fields = [("q", TEXT), ("api_key", KEY)] if key is None else [("api_key", key), ("q", TEXT)]
    sent = Sent(*write(*fields))
    with pytest.raises(UnauthenticatedError) as caught:
        await asked(calls, sent)
    assert sent.taken * PIECE < KEY_BYTES + PIECE
    assert ("first 16384 bytes" in caught.value.message) == (key is None)
    [record] = played.records
    assert (record.method, record.reason, record.protocol) == ("TranslateText", "UNAUTHENTICATED", "libretranslate")


@every_kind
async def test_a_key_counts_at_the_beginning_of_a_large_body(calls, write: Write) -> None:
    assert await asked(calls, Sent(*write(("source", "é"), ("api_key", KEY), ("q", TEXT)))) == (TEXT, NAME)


@every_kind
async def test_a_key_counts_anywhere_in_a_small_body(calls, write: Write) -> None:
    assert await asked(calls, Sent(*write(("q", TEXT[:2_000]), ("api_key", KEY)))) == (TEXT[:2_000], NAME)


@every_kind
async def test_a_key_of_a_header_or_the_url_lets_any_body_in(calls, write: Write) -> None:
    for sent in (
        Sent(*write(("q", TEXT)), x_api_key=KEY),
        Sent(*write(("q", TEXT)), authorization=f"Bearer {KEY}"),
        Sent(*write(("q", TEXT)), query=f"api_key={KEY}"),
    ):
        assert await asked(calls, sent) == (TEXT, NAME)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"["),
        ("application/json", b'{"q": ' + b"[" * KEY_BYTES),
        ("application/json", b'{"q": ' + b"9" * KEY_BYTES),
        ("application/json", b'{"api_key": 5}'),
        (urlencoded.KIND, b"api_key=%ff"),
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=x", b"\0" * KEY_BYTES),
        ("text/plain", b"a"),
    ],
)
async def test_a_body_of_nobody_that_cannot_be_read_has_no_key(calls, kind: str, body: bytes) -> None:
    with pytest.raises(UnauthenticatedError):
        await asked(calls, Sent(kind, body or b"a"))


async def test_a_body_with_a_key_that_cannot_be_read_is_a_call_of_its_caller(calls, played) -> None:
    with pytest.raises(InvalidRequestError, match="not JSON"):
        await asked(calls, Sent("application/json", b'{"api_key": "dragoman_one", "q": ]'))
    assert played.records[-1].caller == NAME


async def test_large_bodies_are_read_one_after_another(calls, monkeypatch) -> None:
    running, most = set(), []
    read = urlencoded.read

    def watched(body: bytes, max_fields: int) -> list[tuple[str, str]]:
        if len(body) < PIECE:  # of the URL
            return read(body, max_fields)
        me = object()
        running.add(me)
        most.append(len(running))
        time.sleep(0.01)  # others would begin meanwhile
        running.remove(me)
        return read(body, max_fields)

    monkeypatch.setattr(urlencoded, "read", watched)
    sent = [Sent(*as_form(("q", TEXT)), x_api_key=KEY) for _ in range(8)]
    await asyncio.gather(*(asked(calls, each) for each in sent))
    assert most == [1] * 8


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("source_language_code: must be a code", "source: must be a code"),
        ("contents[3]: must be text: 'a: b'", "q[3]: must be text: 'a: b'"),
        ("config.contents: must hold at most 2 texts", "q: must hold at most 2 texts"),
        ("options.beam_size: must be at most 4", "options.beam_size: must be at most 4"),
        (f"contents: are 2; {OTHERS_TAKE_MORE}", "q: are 2; send fewer texts a call"),
        ("no model translates from a to b", "no model translates from a to b"),
    ],
)
def test_an_error_names_a_parameter_as_its_caller_does(message: str, said: str) -> None:
    assert in_own_names(InvalidRequestError(message), {"contents": "q", "source_language_code": "source"}) == said
