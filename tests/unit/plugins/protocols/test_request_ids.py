"""The ids of requests in all answers, before handlers whose engine the tests play."""

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from plugins.documents.jobs import DocumentJobs
from plugins.http import application, own
from plugins.http.calls import Calls
from plugins.http.forwarded import TrustedProxies
from plugins.http.methods import Methods
from plugins.protocols import connect
from plugins.protocols.deepl import DeepL
from plugins.protocols.deepl_documents import DeepLDocuments
from plugins.protocols.libretranslate import LibreTranslate
from plugins.protocols.libretranslate_files import LibreTranslateFiles
from plugins.protocols.parameter_calls import ParameterCalls
from service.handlers.translation import TranslationHandlers
from service.wire import SERVICE, CallProtocol
from tests.unit.plugins.http.asgi import call
from tests.unit.plugins.http.keyed import KEY, keyed
from tests.unit.service.played_engine import PlayedEngine

CONNECT = f"/{SERVICE}/TranslateText"
ASKED = {"contents": ["tom"], "model": "en-de"}


async def _fail(_: Any) -> Response:
    raise ZeroDivisionError


def app_of(played: PlayedEngine, handlers: TranslationHandlers) -> ASGIApp:
    calls = Calls(handlers, 1_000_000, TrustedProxies([]))
    methods = Methods(handlers, calls)
    of_deepl, of_libretranslate = (
        ParameterCalls(calls, *each)
        for each in ((CallProtocol.DEEPL, "auth_key"), (CallProtocol.LIBRETRANSLATE, "api_key"))
    )
    jobs = DocumentJobs(handlers)
    routes = [
        *own.routes(handlers, methods, lambda: True),
        *connect.routes(methods),
        *LibreTranslate(handlers, of_libretranslate).routes(),
        *LibreTranslateFiles(jobs, of_libretranslate).routes(),
        *DeepLDocuments(handlers, jobs, of_deepl).routes(),
        *DeepL(handlers, of_deepl).routes(),
        Route("/fails", _fail),
    ]
    return application.make(routes, [])


@pytest.fixture
def app(played: PlayedEngine) -> ASGIApp:
    return app_of(played, played.handlers)


ANSWERS = [
    ("POST", "/v1/translate", {"contents": [""], "model": "en-de"}, 200),
    ("POST", "/v1/translate", {"unknown": 1}, 400),
    ("POST", "/v1/translate", {"contents": []}, 400),
    ("POST", "/v1/translate:stream", {"unknown": 1}, 400),
    ("GET", "/v1/models", None, 200),
    ("GET", "/v1/translate", None, 405),
    ("GET", "/none", None, 404),
    ("GET", "/health", None, 200),
    ("POST", CONNECT, {"contents": [""], "model": "en-de"}, 200),
    ("POST", CONNECT, {"unknown": 1}, 400),
    ("POST", "/translate", {"q": " ", "source": "en", "target": "de"}, 200),
    ("POST", "/translate", {"q": 5}, 400),
    ("GET", "/languages", None, 200),
    ("POST", "/translate_file", {}, 400),
    ("GET", "/download_file/x", None, 404),
    ("POST", "/v2/translate", {"text": [" "], "source_lang": "EN", "target_lang": "DE"}, 200),
    ("POST", "/v2/translate", {}, 400),
    ("GET", "/v2/usage", None, 200),
    ("GET", "/v2/none", None, 404),
    ("POST", "/v2/document", {}, 400),
    ("POST", "/v2/document/x", {"document_key": "x"}, 404),
]


@pytest.mark.parametrize(("method", "path", "content", "status"), ANSWERS)
async def test_every_answer_has_the_id_that_the_log_has(app, played, method, path, content, status) -> None:
    answer = await call(app, method, path, content, x_request_id="my-id")
    assert (answer.status, answer.headers["x-request-id"]) == (status, "my-id")
    assert all(record.request_id == "my-id" for record in played.records)


@pytest.mark.parametrize("path", ["/v1/translate", CONNECT, "/translate", "/v2/translate", "/v2/document"])
async def test_an_answer_to_nobody_has_an_id(played, path: str) -> None:
    app = app_of(played, keyed(played))
    answer = await call(app, "POST", path, {}, x_request_id="my-id", x_api_key=KEY + "x")
    assert answer.status in (401, 403)
    assert (answer.headers["x-request-id"], played.records[-1].request_id) == ("my-id", "my-id")


@pytest.mark.parametrize(
    ("path", "header", "parameter"),
    [
        ("/v1/translate", "authorization: Bearer KEY", ""),
        (CONNECT, "authorization: Bearer KEY", ""),
        ("/translate", "authorization: Bearer KEY", "api_key"),
        ("/v2/translate", "Authorization: DeepL-Auth-Key KEY", "auth_key"),
        ("/v2/document", "Authorization: DeepL-Auth-Key KEY", "auth_key"),
    ],
)
async def test_a_missing_key_is_told_in_the_words_of_the_protocol(
    played, path: str, header: str, parameter: str
) -> None:
    answer = await call(app_of(played, keyed(played)), "POST", path, {})
    said = f'no API key: send "{header}", or "x-api-key: KEY"'
    if parameter:
        said += f"; of a body, {parameter} counts in the first 16384 bytes"
    error = answer.json.get("error")
    assert (error["message"] if isinstance(error, dict) else error or answer.json["message"]) == said


@pytest.mark.parametrize("headers", [{}, {"x_request_id": "no id"}, {"x_request_id": "a" * 129}])
async def test_an_id_is_made_up_where_there_is_none(app, played, headers: dict[str, str]) -> None:
    answers = [await call(app, "POST", "/translate", {"q": 5}, **headers) for _ in range(2)]
    made = [answer.headers["x-request-id"] for answer in answers]
    assert made == [record.request_id for record in played.records]
    assert len({*made, *headers.values()}) == 2 + len(headers)


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/translate:stream", CONNECT])
async def test_the_id_of_a_body_wins(app, played, path: str) -> None:
    content = ASKED | {"requestId": "of-body", "targetLanguageCode": "xx"}
    answer = await call(app, "POST", path, content, x_request_id="of-header")
    assert (answer.headers["x-request-id"], played.records[-1].request_id) == ("of-body", "of-body")


async def test_one_id_goes_through_a_call(app, played) -> None:
    answering = asyncio.create_task(call(app, "POST", "/v1/translate", ASKED, x_request_id="my-id"))
    [segment] = await played.taken(1)
    played.exhaust(segment)
    answer = await answering
    assert (answer.json["requestId"], answer.headers["x-request-id"]) == ("my-id", "my-id")


async def test_a_fault_of_the_server_has_an_id(app) -> None:
    sent = []
    scope = {"type": "http", "method": "GET", "path": "/fails", "query_string": b"", "headers": []}
    with pytest.raises(ZeroDivisionError):  # for the log of the connection, behind the answer
        await app(scope, None, lambda message: _kept(sent, message))
    assert sent[0]["status"] == 500
    assert json.loads(sent[1]["body"])["error"]["status"] == "INTERNAL"
    assert "x-request-id" in [name.decode() for name, _ in sent[0]["headers"]]


async def _kept(sent: list[Any], message: Any) -> None:
    sent.append(message)
