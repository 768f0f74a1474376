"""Documents that are being translated, and those that wait to be fetched: in memory or a folder, and for a while."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from dragoman.errors import (
    ConcurrencyLimitedError,
    DragomanError,
    InternalError,
    QueueFullError,
    from_text_error,
    to_text_error,
)
from dragoman.v1 import translation_pb2 as pb
from plugins.documents.documents import METHOD, AskedDocument, Documents
from plugins.documents.folder import BEAT_S, NAME_BYTES, Entry, SharedFolder
from service.failures import unexpected
from service.handlers.context import CallContext
from service.handlers.translation import TranslationHandlers
from service.wire import Protocol

KEEP_S: Final = 600.0  # a document that nobody fetches
# Of all clients; one client may have half of each.
MAX_RUNNING: Final = 4  # each holds its document, unpacked
MAX_JOBS: Final = 256
MAX_BYTES: Final = 64 * 2**20  # of uploads that are being translated, and of translated documents
_RETRY_S: Final = 5.0

_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class DocumentJob:
    """A document on its way.

    Attributes:
        protocol: by what it came, and by what alone it is found.
        client: who sent it.
        file_name: as the client calls it.
        size: of what is kept of it, in bytes.
        id: its name; nobody guesses it.
        key: a second secret, for protocols that have one.
        task: gives the content of the translated document, or raises a DragomanError; of one that is kept in a folder,
            only :meth:`DocumentJobs.find` gives the content.
    """

    protocol: Protocol
    client: str
    file_name: str
    size: int
    id: str = field(default_factory=lambda: secrets.token_hex(NAME_BYTES))
    key: str = field(default_factory=lambda: secrets.token_hex(NAME_BYTES))
    task: asyncio.Future[bytes] = field(init=False)


class DocumentJobs:
    """All of them; lives on the event loop.

    Args:
        documents: translates them.
        handlers: are told of those that are refused.
        folder: where servers keep those that are translated; None: this one does, in memory.
    """

    def __init__(self, documents: Documents, handlers: TranslationHandlers, folder: SharedFolder | None = None) -> None:
        self._documents = documents
        self._handlers = handlers
        self._folder = folder
        self._jobs: dict[str, DocumentJob] = {}
        self._sweeping: asyncio.Task[None]

    async def begin(self, asked: AskedDocument, context: CallContext) -> DocumentJob:
        """Begin to translate a document.

        Raises:
            ConcurrencyLimitedError: there are too many of the client.
            QueueFullError: there are too many of all.
            DragomanError: no call of the client is let in now, or the folder fails.
        """
        job = DocumentJob(context.protocol, context.caller.name, asked.name, len(asked.content))
        try:
            if self._folder is not None:
                self._forget_others(await _on_disk(self._folder.sweep, KEEP_S))
            outgoing = self._outgoing(job)
        except DragomanError as error:
            self._handlers.refuse(METHOD, context, error)
        translating = asyncio.create_task(self._translate(asked, context))
        job.task = asyncio.create_task(self._run(job, translating))
        job.task.add_done_callback(lambda _: self._end(job))
        self._jobs[job.id] = job
        await asyncio.sleep(0)  # its call begins, and is let in or refused before it waits for anything
        if translating.done():
            await self.forget(job)
            translating.result()
        try:
            for old in outgoing:
                await self.forget(old)
            if self._folder is not None:
                await _on_disk(self._folder.announce, job.id, _entry(job))
        except BaseException:  # nobody learns its name
            await self.forget(job)
            raise
        return job

    async def find(self, protocol: Protocol, job_id: str) -> DocumentJob | None:
        """Give a job of a protocol; None where it has none of this name, or none any more.

        Raises:
            InternalError: the folder fails.
        """
        job = self._jobs.get(job_id)
        if self._folder is not None and (job is None or _is_translated(job)):
            found = await _on_disk(self._folder.read, job_id)
            job = None if found is None else _kept(job_id, *found)
        return job if job and job.protocol is protocol else None

    async def forget(self, job: DocumentJob) -> None:
        """Keep nothing of a job any more; one that runs is cancelled."""
        if known := self._jobs.pop(job.id, None):
            known.task.cancel()
        if self._folder is not None:
            await _tried(self._folder.remove, job.id)

    async def _translate(self, asked: AskedDocument, context: CallContext) -> bytes:
        try:
            return await self._documents.translate(asked, context)
        except DragomanError:
            raise
        except Exception as error:
            raise unexpected(error) from None

    async def _run(self, job: DocumentJob, translating: Awaitable[bytes]) -> bytes:
        """Wait for a translation, and keep what became of it where others find it."""
        beating = asyncio.create_task(self._beat(job.id))
        try:
            content = await translating
        except DragomanError as error:
            await self._keep(job, b"", error)
            raise
        finally:
            beating.cancel()
        job.size = len(content)
        return await self._keep(job, content)

    async def _keep(self, job: DocumentJob, content: bytes, error: DragomanError | None = None) -> bytes:
        """Give what is kept of a job in memory.

        Raises:
            InternalError: it cannot be kept in the folder.
        """
        if self._folder is None:
            return content
        written = "" if error is None else to_text_error(error).SerializeToString().hex()
        entry = _entry(job)._replace(is_done=True, error=written)
        await _on_disk(self._folder.keep, job.id, entry, content)
        return b""

    async def _beat(self, job_id: str) -> None:
        """Say again and again that a job is not given up."""
        while self._folder is not None:
            await asyncio.sleep(BEAT_S)
            await _tried(self._folder.touch, job_id)

    def _forget_others(self, kept: Container[str]) -> None:
        """Forget the jobs that are done, and were fetched of another server."""
        for job in self._of():
            if job.task.done() and job.id not in kept:
                del self._jobs[job.id]

    def _end(self, job: DocumentJob) -> None:
        if job.task.cancelled():
            self._jobs.pop(job.id, None)
            return
        if job.task.exception() is not None:  # asked, so that asyncio does not log what nobody fetches
            job.size = 0
        asyncio.get_running_loop().call_later(KEEP_S, self._expire, job.id)  # the timer keeps no document

    def _expire(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)
        if self._folder is not None:
            self._sweeping = asyncio.create_task(_tried(self._folder.sweep, KEEP_S))

    def _outgoing(self, new: DocumentJob) -> list[DocumentJob]:
        """Give what makes room for a document, if need be: the client's oldest ones that it has not fetched.

        Raises:
            ConcurrencyLimitedError: the client has too many on their way, or too large ones.
            QueueFullError: all clients together have.
        """
        own, every = self._of(new.client), self._of()
        _refuse_running(own, MAX_RUNNING // 2, ConcurrencyLimitedError, "of one client")
        _refuse_running(every, MAX_RUNNING, QueueFullError, "together")
        outgoing: list[DocumentJob] = []
        for job in [job for job in own if job.task.done()]:
            if _fits(new, own, 2) and _fits(new, every, 1):
                break
            own.remove(job)
            every.remove(job)
            outgoing.append(job)
        if not _fits(new, own, 2):
            message = f"documents of one client may take {MAX_BYTES // 2} bytes together"
            raise ConcurrencyLimitedError(message, retry_delay_s=_RETRY_S)
        if not _fits(new, every, 1):
            raise QueueFullError(f"documents may take {MAX_BYTES} bytes together", retry_delay_s=_RETRY_S)
        return outgoing

    def _of(self, client: str | None = None) -> list[DocumentJob]:
        """Give the jobs of a client, or of all, the oldest first."""
        return [job for job in self._jobs.values() if client in (None, job.client)]


async def _on_disk(work: Callable[..., _T], *arguments: object) -> _T:
    """Have a folder do something, on a thread.

    Raises:
        InternalError: it cannot; the log says why.
    """
    try:
        return await asyncio.to_thread(work, *arguments)
    except OSError as error:
        raise unexpected(error) from None


async def _tried(work: Callable[..., object], *arguments: object) -> None:
    """Have a folder do something if it can; where it cannot, the log says why."""
    with suppress(InternalError):
        await _on_disk(work, *arguments)


def _is_translated(job: DocumentJob) -> bool:
    return job.task.done() and (job.task.cancelled() or job.task.exception() is None)


def _entry(job: DocumentJob) -> Entry:
    return Entry(job.protocol, job.client, job.file_name, job.key)


def _kept(job_id: str, entry: Entry, content: bytes) -> DocumentJob:
    """Make a job of what the folder has of it."""
    job = DocumentJob(Protocol(entry.protocol), entry.client, entry.file_name, len(content), job_id, entry.key)
    job.task = asyncio.get_running_loop().create_future()
    if entry.error:
        job.task.set_exception(from_text_error(pb.TextError.FromString(bytes.fromhex(entry.error))))
        job.task.exception()  # asked, so that asyncio does not log it
    elif entry.is_done:
        job.task.set_result(content)
    return job


def _refuse_running(jobs: Sequence[DocumentJob], limit: int, error: type[DragomanError], whose: str) -> None:
    if sum(not job.task.done() for job in jobs) >= limit:
        raise error(f"at most {limit} documents {whose} are translated at a time", retry_delay_s=_RETRY_S)


def _fits(new: DocumentJob, jobs: Sequence[DocumentJob], share: int) -> bool:
    """Tell whether a document has room beside others, of all that there is or of a share."""
    return new.size + sum(job.size for job in jobs) <= MAX_BYTES // share and len(jobs) < MAX_JOBS // share
