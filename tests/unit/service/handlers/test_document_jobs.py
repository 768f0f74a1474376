"""Documents that are translated and kept, before an engine that the tests play."""

import asyncio
import gc
import sys
import time
import weakref

import pytest

from dragoman.errors import (
    ConcurrencyLimitedError,
    DeadlineExceededError,
    DrainingError,
    InvalidRequestError,
    QueueFullError,
)
from service.handlers import document_jobs
from service.handlers.context import CallContext
from service.handlers.document_jobs import DocumentJob, DocumentJobs
from service.handlers.documents import AskedDocument, Documents
from service.security.callers import Caller
from service.wire import Protocol
from tests.unit.service.played_engine import PlayedEngine, until


def asked(content: bytes = b"tom\n", name: str = "a.txt") -> AskedDocument:
    return AskedDocument(name, content, "en", "de")


def context(client: str = "alice", timeout_s: float = 100.0) -> CallContext:
    return CallContext(Caller(client), time.monotonic() + timeout_s, protocol=Protocol.DEEPL)


@pytest.fixture
def jobs(played: PlayedEngine) -> DocumentJobs:
    return DocumentJobs(Documents(played.handlers, played.gate, 1024), played.handlers)


async def finish(played: PlayedEngine, job: DocumentJob) -> bytes:
    for segment in await played.taken(1):
        played.exhaust(segment)
    return await job.task


async def test_texts_go_through_one_call(jobs: DocumentJobs, played: PlayedEngine) -> None:
    job = jobs.begin(asked(b"tom\r\n\r\n12\n"), context())
    assert await finish(played, job) == b"tom\r\n\r\n12\n"
    assert [(record.method, record.texts, record.caller) for record in played.records] == [
        ("BatchTranslateText", 1, "alice")
    ]
    assert jobs.find(Protocol.DEEPL, job.id) is job


async def test_each_client_has_half_of_the_places(jobs: DocumentJobs, played: PlayedEngine) -> None:
    begun = [jobs.begin(asked(), context(client)) for client in ("alice", "alice", "bob", "bob")]
    with pytest.raises(ConcurrencyLimitedError, match="at most 2 documents of one client") as caught:
        jobs.begin(asked(), context())
    assert caught.value.retry_delay_s == 5
    with pytest.raises(QueueFullError, match="at most 4 documents together"):
        jobs.begin(asked(), context("carol"))
    assert [record.reason for record in played.records] == ["CONCURRENCY_LIMITED", "QUEUE_FULL"]
    jobs.forget(begun[0])
    await until(lambda: begun[0].task.done())
    assert jobs.begin(asked(), context()).id != begun[0].id


async def test_the_oldest_that_nobody_fetched_makes_room(jobs: DocumentJobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "MAX_BYTES", 16)
    first = jobs.begin(asked(), context())
    await finish(played, first)
    second = jobs.begin(asked(), context())
    await finish(played, second)
    assert jobs.find(Protocol.DEEPL, first.id) is first
    third = jobs.begin(asked(), context())
    assert jobs.find(Protocol.DEEPL, first.id) is None
    assert jobs.find(Protocol.DEEPL, second.id) is second
    with pytest.raises(ConcurrencyLimitedError, match="documents of one client may take 8 bytes together"):
        jobs.begin(asked(b"12345"), context())
    jobs.forget(third)


async def test_what_nobody_fetches_is_forgotten(jobs: DocumentJobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "KEEP_S", 0.01)
    job = jobs.begin(asked(), context())
    await finish(played, job)
    await until(lambda: jobs.find(Protocol.DEEPL, job.id) is None)


async def test_nothing_keeps_a_document_that_was_fetched(jobs: DocumentJobs, played) -> None:
    job = jobs.begin(asked(), context())
    await finish(played, job)
    kept = weakref.ref(job.task)
    jobs.forget(job)
    del job
    await asyncio.sleep(0)  # the event loop itself still has it
    gc.collect()
    assert kept() is None


async def test_a_document_that_is_forgotten_ends_its_call(jobs: DocumentJobs, played: PlayedEngine) -> None:
    job = jobs.begin(asked(), context())
    await played.taken(1)
    jobs.forget(job)
    await until(lambda: job.task.done())
    assert job.task.cancelled()
    assert [record.code.name for record in played.records] == ["CANCELLED"]


async def test_a_deadline_holds(jobs: DocumentJobs, played: PlayedEngine) -> None:
    with pytest.raises(DeadlineExceededError):
        await jobs.begin(asked(), context(timeout_s=0.0)).task
    assert [record.code.name for record in played.records] == ["DEADLINE_EXCEEDED"]


async def test_a_server_that_ends_takes_no_document(jobs: DocumentJobs, played: PlayedEngine) -> None:
    played.gate.close()
    with pytest.raises(DrainingError):
        await jobs.begin(asked(), context()).task


@pytest.mark.parametrize(("name", "module"), [("a.docx", "lxml"), ("a.po", "polib"), ("a.md", "markdown_it")])
async def test_a_missing_extra_is_one_clear_error(jobs: DocumentJobs, monkeypatch, name: str, module: str) -> None:
    for known in list(sys.modules):
        if known.startswith(("dragoman.documents.", module)):
            monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequestError, match=f'{name}. needs the extra "documents".*no module .{module}'):
        await asyncio.wait_for(jobs.begin(asked(name=name), context()).task, 100)
