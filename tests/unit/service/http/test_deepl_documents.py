"""DeepL's documents before handlers whose engine the tests play."""

import time

import pytest
from starlette.applications import Starlette

from service.handlers.context import CallContext
from service.handlers.document_jobs import DocumentJobs
from service.handlers.documents import AskedDocument, Documents
from service.http import application
from service.http.calls import Calls
from service.http.deepl_documents import DeepLDocuments
from service.http.parameter_calls import ParameterCalls
from service.security.callers import Caller
from service.security.forwarded import TrustedProxies
from service.wire import Protocol
from tests.unit.service.http.asgi import call
from tests.unit.service.played_engine import PlayedEngine


@pytest.fixture
def jobs(played: PlayedEngine) -> DocumentJobs:
    return DocumentJobs(Documents(played.handlers, played.gate, 1024), played.handlers)


@pytest.fixture
def app(played: PlayedEngine, jobs: DocumentJobs) -> Starlette:
    calls = ParameterCalls(Calls(played.handlers, 1_000_000, TrustedProxies([])), Protocol.DEEPL, "auth_key")
    return application.make(DeepLDocuments(played.handlers, jobs, calls).routes(), [])


@pytest.mark.parametrize(("client", "status"), [("ipv4:127.0.0.1", 200), ("ipv4:192.0.2.1", 404)])
async def test_a_document_is_shown_to_the_client_that_sent_it(app, jobs, client: str, status: int) -> None:
    context = CallContext(Caller(client), time.monotonic() + 100)
    job = jobs.begin(AskedDocument("a.txt", b"tom", "en", "de"), context)
    answer = await call(app, "POST", f"/v2/document/{job.id}", {"document_key": job.key})
    assert answer.status == status
    wrong = await call(app, "POST", f"/v2/document/{job.id}", {"document_key": "é"})
    assert (wrong.status, list(wrong.json)) == (404, ["message"])
    early = await call(app, "POST", f"/v2/document/{job.id}/result", {"document_key": job.key})
    assert early.status == (503 if status == 200 else status)
    assert list(early.json) == ["message"]
    jobs.forget(job)


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


async def test_the_key_of_a_document_is_needed(app) -> None:
    answer = await call(app, "GET", "/v2/document/x")
    assert (answer.status, answer.json) == (400, {"message": "document_key: the parameter is missing"})
