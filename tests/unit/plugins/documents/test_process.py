"""Documents in real processes of their own."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from dragoman.documents.document import DocumentText
from dragoman.errors import InternalError, InvalidRequestError, QueueFullError
from plugins.documents import child
from plugins.documents.process import DocumentProcess
from service.telemetry.metrics import Metrics
from tests.unit.dragoman.documents import made


@pytest.fixture
def children() -> Callable[[], list[int]]:
    """Processes that a test started: the tests before it may have left some, as multiprocessing's."""
    before = set(child_processes())
    return lambda: [pid for pid in child_processes() if pid not in before]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def document(children: Callable[[], list[int]], metrics: Metrics) -> AsyncIterator[DocumentProcess]:
    async with DocumentProcess(metrics) as process:
        yield process
    assert children() == []


def counted(metrics: Metrics) -> float:
    [family] = metrics.document_failures_total.collect()
    return float(family.samples[0].value)


def child_processes() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


async def test_texts_go_out_in_portions_and_come_back(document: DocumentProcess) -> None:
    await document.read("a.txt", "tom\n12\nÄpfel\nlast\n".encode())
    assert (document.protects_placeholders, document.languages) == (False, [])
    assert await document.texts(2) == [DocumentText("tom", "line 1"), DocumentText("Äpfel", "line 3")]
    await document.take({1: "äpples"})
    assert await document.texts(2) == [DocumentText("last", "line 4")]
    assert await document.texts(2) == []
    await document.take({0: "Tom &amp; Co"})
    assert (await document.write()).decode() == "Tom & Co\n12\näpples\nlast\n"


async def test_a_document_tells_the_languages_that_it_states(document: DocumentProcess) -> None:
    await document.read("a.po", b'msgid ""\nmsgstr "Language: de\\n"\n')
    assert document.languages == [["", "de", "Language in its header"]]


async def test_a_process_that_cannot_begin_leaves_no_socket_open(document: DocumentProcess, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise BlockingIOError("no process more")

    pair = socket.socketpair()
    monkeypatch.setattr(socket, "socketpair", lambda: pair)
    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(BlockingIOError):
        await document.read("a.txt", b"tom")
    await asyncio.sleep(0)
    assert [end.fileno() for end in pair] == [-1, -1]


async def test_what_several_tasks_send_does_not_mix(document: DocumentProcess, children) -> None:
    await document.read("a.txt", b"tom\ntom\ntom\n")
    [pid] = children()
    os.kill(pid, signal.SIGSTOP)  # so that what is sent has to wait
    sent = [document.take({0: "a" * 2**22}), document.take({1: "b"}), document.speak("en", "de"), document.texts(3)]
    tasks = [asyncio.create_task(each) for each in sent]
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGCONT)
    assert len((await asyncio.gather(*tasks))[3]) == 3
    assert (await document.write()).decode() == "a" * 2**22 + "\nb\ntom\n"


async def test_a_page_says_the_language_of_its_translation(document: DocumentProcess) -> None:
    await document.read("a.html", b'<html lang="en">tom')
    await document.speak("en", "de")
    await document.take({0: '<html lang="en">Tom'})
    assert await document.write() == b'<html lang="de">Tom'


async def test_the_system_bounds_what_a_document_takes(document: DocumentProcess, children) -> None:
    await document.read("a.docx", made.word())
    [pid] = children()
    limits = Path(f"/proc/{pid}/limits").read_text()
    soft = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    assert soft["Max address space"] == str(child.MEMORY_BYTES)
    assert soft["Max cpu time"] == str(child.CPU_S)
    assert soft["Max core file size"] == "0"
    assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)


async def test_a_document_that_takes_too_much_memory_is_one_clear_error(document: DocumentProcess) -> None:
    content = "a" * (2**26 - 4) + "😀"  # for the last character each takes four bytes, once it is decoded
    with pytest.raises(InvalidRequestError, match="file: takes more than 512 MiB of memory: divide it"):
        await document.read("a.txt", content.encode())


@pytest.mark.parametrize(
    ("number", "error", "message", "failures"),
    [
        (signal.SIGXCPU, InvalidRequestError, "file: takes more than 60 s of processor time: divide it", 0),
        (signal.SIGKILL, QueueFullError, "the machine has no memory for the document now", 1),
        (signal.SIGSEGV, InternalError, "the server failed; its log says more", 1),
    ],
)
async def test_a_process_that_ends_says_why(
    document: DocumentProcess, metrics: Metrics, children, number: int, error: type, message: str, failures: int
) -> None:
    await document.read("a.txt", b"tom")
    os.kill(*children(), number)
    with pytest.raises(error, match=message):
        await document.texts(1)
    assert counted(metrics) == failures


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"\xff", "file: is not UTF-8"),
        ("a.txt", b"a\n" * (child.MAX_TEXTS + 1), "file: must have at most 100000 texts, has 100001"),
    ],
)
async def test_what_is_wrong_with_a_file_is_said(document: DocumentProcess, name, content: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        await document.read(name, content)


async def test_a_failure_of_ours_is_logged_and_counted(document: DocumentProcess, metrics: Metrics, capsys) -> None:
    await document.read("a.txt", b"tom")
    await document.texts(1)
    await document.take({0: "<b>Tom</b>"})
    with pytest.raises(InternalError, match="the server failed"):
        await document.write()
    assert "a translation has a tag that its text has not" in capsys.readouterr().out
    assert counted(metrics) == 1


async def test_signals_of_a_terminal_do_not_end_a_document(document: DocumentProcess, children) -> None:
    await document.read("a.txt", b"tom")
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(*children(), number)
    assert len(await document.texts(1)) == 1
