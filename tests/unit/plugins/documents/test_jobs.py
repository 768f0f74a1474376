"""Documents that are translated and kept, before an engine that the tests play."""

import asyncio
import errno
import gc
import time
import weakref
from pathlib import Path

import pytest

from dragoman.errors import (
    ConcurrencyLimitedError,
    DeadlineExceededError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    QueueFullError,
    RateLimitedError,
)
from plugins.documents import jobs as document_jobs
from plugins.documents.documents import AskedDocument
from plugins.documents.folder import SharedFolder
from plugins.documents.jobs import DocumentJob, DocumentJobs
from plugins.documents.process import DocumentProcess
from service.handlers.context import CallContext
from service.security.access import Caller
from service.wire import CallProtocol
from tests.unit.dragoman.documents import made
from tests.unit.plugins.http.keyed import KEY, keyed
from tests.unit.service.played_engine import PATIENCE_S, PlayedEngine, until

# A document that takes seconds to read.
SLOW = made.odt(made.ODT_CONTENT.replace("<text:p>12</text:p>", "<text:p>a</text:p>" * 500_000))


def asked(content: bytes = b"tom\n", name: str = "a.txt") -> AskedDocument:
    return AskedDocument(name, content, "en", "de")


def context(client: str = "alice", timeout_s: float = 100.0) -> CallContext:
    return CallContext(Caller(client), time.monotonic() + timeout_s, protocol=CallProtocol.DEEPL)


@pytest.fixture
def jobs(played: PlayedEngine) -> DocumentJobs:
    return DocumentJobs(played.handlers)


async def finish(played: PlayedEngine, job: DocumentJob) -> bytes:
    for segment in await played.taken(1):
        played.exhaust(segment)
    return await job.task


async def test_texts_go_through_one_call(jobs: DocumentJobs, played: PlayedEngine) -> None:
    job = await jobs.begin(asked(b"tom\r\n\r\n12\n"), context())
    assert await finish(played, job) == b"tom\r\n\r\n12\n"
    assert [(record.method, record.texts, record.caller) for record in played.records] == [
        ("BatchTranslateText", 1, "alice")
    ]
    assert await jobs.find(CallProtocol.DEEPL, job.id) is job


async def test_each_client_has_half_of_the_places(jobs: DocumentJobs, played: PlayedEngine) -> None:
    begun = [await jobs.begin(asked(), context(client)) for client in ("alice", "alice", "bob", "bob")]
    with pytest.raises(ConcurrencyLimitedError, match="at most 2 documents of one client") as caught:
        await jobs.begin(asked(), context())
    assert caught.value.retry_delay_s == 5
    with pytest.raises(QueueFullError, match="at most 4 documents together"):
        await jobs.begin(asked(), context("carol"))
    assert [record.reason for record in played.records] == ["CONCURRENCY_LIMITED", "QUEUE_FULL"]
    await jobs.forget(begun[0])
    await until(lambda: begun[0].task.done())
    assert (await jobs.begin(asked(), context())).id != begun[0].id


async def test_the_oldest_that_nobody_fetched_makes_room(jobs: DocumentJobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "MAX_BYTES", 16)
    first = await jobs.begin(asked(), context())
    await finish(played, first)
    second = await jobs.begin(asked(), context())
    await finish(played, second)
    assert await jobs.find(CallProtocol.DEEPL, first.id) is first
    third = await jobs.begin(asked(), context())
    assert await jobs.find(CallProtocol.DEEPL, first.id) is None
    assert await jobs.find(CallProtocol.DEEPL, second.id) is second
    with pytest.raises(ConcurrencyLimitedError, match="documents of one client may take 8 bytes together"):
        await jobs.begin(asked(b"12345"), context())
    await jobs.forget(third)


async def test_an_upload_that_is_refused_costs_no_document(jobs: DocumentJobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "MAX_BYTES", 16)
    first = await jobs.begin(asked(), context())
    await finish(played, first)
    with pytest.raises(ConcurrencyLimitedError, match="documents of one client may take 8 bytes together"):
        await jobs.begin(asked(b"tom tom tom\n"), context())
    played.gate.close()
    with pytest.raises(DrainingError):
        await jobs.begin(asked(b"tom tom\n"), context())
    assert await jobs.find(CallProtocol.DEEPL, first.id) is first


async def test_a_document_that_failed_takes_no_room(jobs: DocumentJobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "MAX_BYTES", 16)
    failed = await jobs.begin(asked(b"\xff\xff\xff\xff"), context())
    with pytest.raises(InvalidRequestError):
        await failed.task
    await finish(played, await jobs.begin(asked(b"tom tom\n"), context()))
    assert await jobs.find(CallProtocol.DEEPL, failed.id) is failed


async def test_documents_of_a_client_make_room_where_those_of_all_take_too_much(jobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "MAX_BYTES", 16)
    contents = {"alice": b"tom\n", "bob": b"tom tom\n", "carol": b"tom\n"}
    kept = {}
    for client, content in contents.items():
        kept[client] = await jobs.begin(asked(content), context(client))
        await finish(played, kept[client])
    with pytest.raises(QueueFullError, match="documents may take 16 bytes together"):
        await jobs.begin(asked(), context("dave"))
    await finish(played, await jobs.begin(asked(), context("alice")))
    found = {client for client, job in kept.items() if await jobs.find(CallProtocol.DEEPL, job.id)}
    assert found == {"bob", "carol"}


async def test_what_nobody_fetches_is_forgotten(jobs: DocumentJobs, played, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "KEEP_S", 0.01)
    job = await jobs.begin(asked(), context())
    await finish(played, job)
    async with asyncio.timeout(PATIENCE_S):
        while await jobs.find(CallProtocol.DEEPL, job.id):
            await asyncio.sleep(0.01)


async def test_nothing_keeps_a_document_that_was_fetched(jobs: DocumentJobs, played) -> None:
    job = await jobs.begin(asked(), context())
    await finish(played, job)
    kept = weakref.ref(job.task)
    await jobs.forget(job)
    del job
    await asyncio.sleep(0)  # the event loop itself still has it
    gc.collect()
    assert kept() is None


async def test_a_document_that_is_forgotten_ends_its_call(jobs: DocumentJobs, played: PlayedEngine) -> None:
    job = await jobs.begin(asked(), context())
    await played.taken(1)
    await jobs.forget(job)
    await until(lambda: job.task.done())
    assert job.task.cancelled()
    assert [record.code.name for record in played.records] == ["CANCELLED"]


async def test_a_deadline_holds(jobs: DocumentJobs, played: PlayedEngine) -> None:
    with pytest.raises(DeadlineExceededError):
        await (await jobs.begin(asked(), context(timeout_s=0.0))).task
    assert [record.code.name for record in played.records] == ["DEADLINE_EXCEEDED"]


async def test_a_server_that_ends_takes_no_document(jobs: DocumentJobs, played: PlayedEngine) -> None:
    played.gate.close()
    with pytest.raises(DrainingError):
        await jobs.begin(asked(), context())


async def test_a_call_is_let_in_before_its_document_is_read(played: PlayedEngine) -> None:
    handlers = keyed(played, requests_per_s=0.01, burst=1)
    jobs = DocumentJobs(handlers)
    caller = handlers.identify("BatchTranslateText", "ipv4:192.0.2.7:1", [("x-api-key", KEY)])
    slow = CallContext(caller, time.monotonic() + 100, protocol=CallProtocol.DEEPL)
    first = await jobs.begin(asked(), slow)
    with pytest.raises(RateLimitedError):
        await jobs.begin(asked(b"\xff"), slow)
    assert await finish(played, first) == b"tom\n"


async def test_a_language_is_detected_within_the_call(jobs: DocumentJobs, played: PlayedEngine) -> None:
    job = await jobs.begin(asked()._replace(source_language="auto"), context())
    await finish(played, job)
    assert [record.method for record in played.records] == ["BatchTranslateText"]


async def test_documents_are_read_beside_each_other(jobs: DocumentJobs, played: PlayedEngine) -> None:
    slow = [await jobs.begin(asked(SLOW, "a.odt"), context()) for _ in range(2)]
    await finish(played, await jobs.begin(asked(), context("bob")))
    assert not any(job.task.done() for job in slow)
    for job in slow:
        await jobs.forget(job)


async def test_a_stop_does_not_wait_for_a_reading(jobs: DocumentJobs, played: PlayedEngine) -> None:
    job = await jobs.begin(asked(SLOW, "a.odt"), context())
    played.gate.close()
    with pytest.raises(DrainingError):
        await job.task
    await played.gate.idle()


async def test_a_document_that_is_written_counts_as_a_call(jobs: DocumentJobs, played, monkeypatch) -> None:
    running = []

    async def write(document: DocumentProcess) -> bytes:
        running.append((len(played.records), played.gate.running))
        return b""

    monkeypatch.setattr(DocumentProcess, "write", write)
    await finish(played, await jobs.begin(asked(), context()))
    assert running == [(1, 1)]


@pytest.fixture
def two(played: PlayedEngine, tmp_path: Path) -> tuple[DocumentJobs, DocumentJobs]:
    """Two servers that share a folder."""
    first, second = (DocumentJobs(played.handlers, SharedFolder(tmp_path)) for _ in range(2))
    return first, second


async def test_servers_that_share_a_folder_answer_for_each_other(two, played: PlayedEngine) -> None:
    mine, yours = two
    job = await mine.begin(asked(), context())
    found = await yours.find(CallProtocol.DEEPL, job.id)
    assert (found.client, found.key, found.file_name, found.task.done()) == ("alice", job.key, "a.txt", False)
    assert await yours.find(CallProtocol.LIBRETRANSLATE, job.id) is None
    await finish(played, job)
    for server in two:
        assert (await server.find(CallProtocol.DEEPL, job.id)).task.result() == b"tom\n"
    await yours.forget(found)
    for server in two:
        assert await server.find(CallProtocol.DEEPL, job.id) is None


async def test_a_shared_document_that_failed_says_why(two) -> None:
    job = await two[0].begin(asked(b"\xff"), context())
    await asyncio.wait([job.task])
    found = await two[1].find(CallProtocol.DEEPL, job.id)
    with pytest.raises(InvalidRequestError, match="file: is not UTF-8"):
        found.task.result()


async def test_what_another_server_gave_out_takes_no_room(two, played: PlayedEngine, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "MAX_JOBS", 4)
    first = await two[0].begin(asked(), context())
    await finish(played, first)
    second = await two[0].begin(asked(), context())
    await finish(played, second)
    await two[1].forget(second)
    third = await two[0].begin(asked(), context())
    assert (await two[0].find(CallProtocol.DEEPL, first.id)).task.result() == b"tom\n"
    await two[0].forget(third)


def fail(monkeypatch, method: str) -> list[str]:
    """Have a method of a folder fail; what comes back gets an item each time."""
    called = []

    def failing(*_: object) -> None:
        called.append(method)
        raise OSError(errno.ESTALE, "stale")

    monkeypatch.setattr(SharedFolder, method, failing)
    return called


async def test_a_folder_that_takes_no_file_fails_the_document(two, played, monkeypatch, capsys) -> None:
    fail(monkeypatch, "keep")
    job = await two[0].begin(asked(b"12"), context())
    with pytest.raises(InternalError):
        await job.task
    with pytest.raises(InternalError):
        (await two[0].find(CallProtocol.DEEPL, job.id)).task.result()
    assert "OSError" in (log := capsys.readouterr().out)
    assert "stale" in log
    assert played.metrics.total("document_failures_total") == 1


@pytest.mark.parametrize(("method", "records"), [("sweep", ["INTERNAL"]), ("announce", ["CANCELLED"])])
async def test_a_folder_that_fails_begins_no_document(two, played, monkeypatch, method: str, records: list) -> None:
    fail(monkeypatch, method)
    fail(monkeypatch, "remove")
    with pytest.raises(InternalError):
        await two[0].begin(asked(), context())
    await played.gate.idle()
    assert [record.code.name for record in played.records] == records


async def test_a_folder_that_fails_gives_no_document(two, monkeypatch) -> None:
    fail(monkeypatch, "read")
    with pytest.raises(InternalError):
        await two[0].find(CallProtocol.DEEPL, "ab" * 24)


async def test_what_a_folder_cannot_forget_stays_until_it_is_swept(two, monkeypatch) -> None:
    job = await two[0].begin(asked(b"12"), context())
    await job.task
    fail(monkeypatch, "remove")
    await two[0].forget(job)
    assert await two[0].find(CallProtocol.DEEPL, job.id)


async def test_a_folder_that_fails_once_is_told_of_the_document_again(two, monkeypatch) -> None:
    monkeypatch.setattr(document_jobs, "BEAT_S", 0.01)
    called = fail(monkeypatch, "touch")
    job = await two[0].begin(asked(), context())
    await until(lambda: len(called) > 1)
    await two[0].forget(job)


async def test_a_folder_that_cannot_be_swept_is_logged(two, monkeypatch, capsys) -> None:
    job = await two[0].begin(asked(b"12"), context())
    monkeypatch.setattr(document_jobs, "KEEP_S", 0.01)
    called = fail(monkeypatch, "sweep")
    await job.task
    await until(lambda: bool(called))
    assert await two[1].find(CallProtocol.DEEPL, job.id)
    assert "unexpected error" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "module"), [("a.docx", "lxml"), ("a.po", "polib"), ("a.md", "markdown_it")])
async def test_a_missing_extra_is_one_clear_error(
    jobs: DocumentJobs, monkeypatch, tmp_path: Path, name: str, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError(name={module!r})")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = await jobs.begin(asked(name=name), context())
    with pytest.raises(InvalidRequestError, match=f'{name}. needs the extra "documents".*no module .{module}'):
        await asyncio.wait_for(job.task, 100)
