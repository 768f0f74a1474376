"""DeepL's documents before handlers whose engine the tests play."""

import time

import pytest
from starlette.types import ASGIApp

from dragoman.errors import InternalError
from plugins.documents.documents import AskedDocument
from plugins.documents.jobs import DocumentJobs
from plugins.http import application
from plugins.http.calls import Calls
from plugins.http.forwarded import TrustedProxies
from plugins.protocols import deepl_documents
from plugins.protocols.deepl_documents import DeepLDocuments
from plugins.protocols.libretranslate_files import LibreTranslateFiles
from plugins.protocols.parameter_calls import ParameterCalls
from plugins.terms.glossaries import StoredGlossaries
from service.handlers.context import CallContext
from service.security.access import Caller
from service.wire import CallProtocol
from tests.unit.plugins.http.asgi import call
from tests.unit.service.played_engine import PATIENCE_S, PlayedEngine


@pytest.fixture
def jobs(played: PlayedEngine) -> DocumentJobs:
    return DocumentJobs(played.handlers)


@pytest.fixture
def app(played: PlayedEngine, jobs: DocumentJobs) -> ASGIApp:
    calls = Calls(played.handlers, 1_000_000, TrustedProxies([]))
    of_deepl = ParameterCalls(calls, CallProtocol.DEEPL, "auth_key")
    of_libretranslate = ParameterCalls(calls, CallProtocol.LIBRETRANSLATE, "api_key")
    routes = [
        *DeepLDocuments(played.handlers, jobs, of_deepl).routes(),
        *LibreTranslateFiles(jobs, of_libretranslate).routes(),
    ]
    return application.make(routes, [])


@pytest.mark.parametrize(("client", "status"), [("ipv4:127.0.0.1", 200), ("ipv4:192.0.2.1", 404)])
async def test_a_document_is_shown_to_the_client_that_sent_it(app, jobs, client: str, status: int) -> None:
    context = CallContext(Caller(client), time.monotonic() + 100, protocol=CallProtocol.DEEPL)
    job = await jobs.begin(AskedDocument("a.txt", b"tom", "en", "de"), context)
    answer = await call(app, "POST", f"/v2/document/{job.id}", {"document_key": job.key})
    assert answer.status == status
    wrong = await call(app, "POST", f"/v2/document/{job.id}", {"document_key": "é"})
    assert (wrong.status, list(wrong.json)) == (404, ["message"])
    early = await call(app, "POST", f"/v2/document/{job.id}/result", {"document_key": job.key})
    assert early.status == (503 if status == 200 else status)
    assert list(early.json) == ["message"]
    await jobs.forget(job)


async def test_a_document_is_not_given_out_by_the_address_of_another_protocol(app, jobs, played) -> None:
    context = CallContext(Caller("ipv4:127.0.0.1"), time.monotonic() + 100, protocol=CallProtocol.DEEPL)
    job = await jobs.begin(AskedDocument("a.txt", b"12", "en", "de"), context)
    await job.task
    assert (await call(app, "GET", f"/download_file/{job.id}.a.txt")).status == 404
    head = await call(app, "HEAD", f"/v2/document/{job.id}/result?document_key={job.key}")
    assert (head.status, head.headers["content-length"]) == (200, "2")  # and it is still there
    answer = await call(app, "POST", f"/v2/document/{job.id}/result", {"document_key": job.key})
    assert (answer.status, answer.json) == (200, 12)


@pytest.mark.parametrize(("method", "path"), [("GET", "/download_file/x.a.txt"), ("POST", "/v2/document/x/result")])
async def test_a_folder_that_fails_is_an_error_of_the_protocol(app, monkeypatch, method: str, path: str) -> None:
    async def find(*_: object) -> None:
        raise InternalError("the server failed")

    monkeypatch.setattr(DocumentJobs, "find", find)
    answer = await call(app, method, path, {"document_key": "x"} if method == "POST" else None)
    assert answer.status == 500
    assert "the server failed" in next(iter(answer.json.values()))


async def test_the_first_question_waits_for_a_small_document(app, jobs, monkeypatch) -> None:
    monkeypatch.setattr(deepl_documents, "HELD_S", PATIENCE_S)
    context = CallContext(Caller("ipv4:127.0.0.1"), time.monotonic() + 100, protocol=CallProtocol.DEEPL)
    job = await jobs.begin(AskedDocument("a.txt", b"12", "en", "de"), context)
    assert not job.task.done()
    answer = await call(app, "POST", f"/v2/document/{job.id}", {"document_key": job.key})
    assert answer.json["status"] == "done"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "file: the parameter is missing"),
        ({"file": "text"}, "file: must be one file, of a form in multipart/form-data"),
    ],
)
async def test_a_document_is_a_file_of_a_form(app, content: dict[str, str], message: str) -> None:
    answer = await call(app, "POST", "/v2/document", {"target_lang": "DE"} | content)
    assert (answer.status, answer.json) == (400, {"message": message})


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ({"target_lang": "FR", "source_lang": "EN"}, 400, "no translation from 'EN' to 'FR'; "),
        ({"target_lang": "FR"}, 400, "no translation from "),
        ({"target_lang": "no language"}, 400, "target_lang: must be a BCP-47 code"),
        ({"target_lang": "DE", "source_lang": "no language"}, 400, "source_lang: must be a BCP-47 code"),
        ({"target_lang": "DE", "source_lang": "EN", "glossary_id": "none"}, 404, "no glossary 'none'; "),
        ({"target_lang": "DE", "glossary_id": "none"}, 404, "no glossary 'none'; "),
        ({"target_lang": "DE", "glossary_id": "terms.de-en"}, 400, "glossary_id[0]: must be for en to de, "),
    ],
)
async def test_languages_and_glossaries_are_checked_before_a_document_is_read(
    app, played, tmp_path, given: dict[str, str], status: int, message: str
) -> None:
    (tmp_path / "terms.de-en.csv").write_text("Haus,house\n")
    played.handlers.glossaries = StoredGlossaries(str(tmp_path))
    played.handlers.glossaries.refresh()
    part = '--x\r\ncontent-disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    parts = [part.format(name, "", value) for name, value in given.items()]
    body = "".join([*parts, part.format("file", '; filename="a.txt"', "tom"), "--x--\r\n"]).encode()
    answer = await call(app, "POST", "/v2/document", body, content_type="multipart/form-data; boundary=x")
    assert answer.status == status
    assert answer.json["message"].startswith(message)
    [record] = played.records
    assert (record.method, record.protocol, record.admitted) == ("BatchTranslateText", "deepl", False)


async def test_the_key_of_a_document_is_needed(app) -> None:
    answer = await call(app, "GET", "/v2/document/x")
    assert (answer.status, answer.json) == (400, {"message": "document_key: the parameter is missing"})
