"""Document jobs: running translations, and results kept for a while in memory or a folder until they are fetched."""

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
from service.wire import CallProtocol

KEEP_S: Final = 600.0  # a result that is not fetched
# Limits for all clients together; one client may use half of each.
MAX_RUNNING: Final = 4  # each job holds its unpacked document
MAX_JOBS: Final = 256
MAX_BYTES: Final = 64 * 2**20  # of the uploads in translation and the translated documents
_RETRY_S: Final = 5.0

_T = TypeVar("_T")


@dataclass(eq=False, slots=True)
class DocumentJob:
    """A document in translation or translated.

    Attributes:
        protocol: the protocol of the upload; the job is found only by this protocol.
        client: the client that sent the document.
        file_name: the client's name of the file.
        size: the size of the stored content, in bytes.
        id: a name that cannot be guessed.
        key: a second secret, for protocols that use one.
        task: returns the content of the translated document, or raises a DragomanError. If documents are kept in a
            folder, only :meth:`DocumentJobs.find` returns the content.
    """

    protocol: CallProtocol
    client: str
    file_name: str
    size: int
    id: str = field(default_factory=lambda: secrets.token_hex(NAME_BYTES))
    key: str = field(default_factory=lambda: secrets.token_hex(NAME_BYTES))
    task: asyncio.Future[bytes] = field(init=False)


class DocumentJobs:
    """All document jobs; lives on the event loop.

    Args:
        folder: the folder shared by servers for translated documents; None: this server keeps them in memory.
    """

    def __init__(self, handlers: TranslationHandlers, folder: SharedFolder | None = None) -> None:
        self._documents = Documents(handlers)
        self._handlers = handlers
        self._folder = folder
        self._jobs: dict[str, DocumentJob] = {}
        self._sweeping: asyncio.Task[None]

    async def begin(self, asked: AskedDocument, context: CallContext) -> DocumentJob:
        """Begin to translate a document.

        Raises:
            ConcurrencyLimitedError: the client has too many documents.
            QueueFullError: all clients together have too many documents.
            DragomanError: the languages or the glossaries are wrong, the limits of the client admit no call now, or
                the folder fails.
        """
        job = DocumentJob(context.protocol, context.caller.name, asked.name, len(asked.content))
        try:
            self._documents.check(asked)
            if self._folder is not None:
                self._forget_others(await self._on_disk(self._folder.sweep, KEEP_S))
            outgoing = self._outgoing(job)
        except DragomanError as error:
            self._handlers.refuse(METHOD, context, error)
        translating = asyncio.create_task(self._translate(asked, context))
        job.task = asyncio.create_task(self._run(job, translating))
        job.task.add_done_callback(lambda _: self._end(job))
        self._jobs[job.id] = job
        await asyncio.sleep(0)  # the call begins, and is admitted or refused before anything blocks
        if translating.done():
            await self.forget(job)
            translating.result()
        try:
            for old in outgoing:
                await self.forget(old)
            if self._folder is not None:
                await self._on_disk(self._folder.announce, job.id, _entry(job))
        except BaseException:  # nobody learns its name
            await self.forget(job)
            raise
        return job

    async def find(self, protocol: CallProtocol, job_id: str) -> DocumentJob | None:
        """Give a job of a protocol; None if the protocol has no job of this name, or no longer.

        Raises:
            InternalError: the folder fails.
        """
        job = self._jobs.get(job_id)
        if self._folder is not None and (job is None or _is_translated(job)):
            found = await self._on_disk(self._folder.read, job_id)
            job = None if found is None else _kept(job_id, *found)
        return job if job and job.protocol is protocol else None

    async def forget(self, job: DocumentJob) -> None:
        """Forget a job; a running job is cancelled."""
        if known := self._jobs.pop(job.id, None):
            known.task.cancel()
        if self._folder is not None:
            await self._tried(self._folder.remove, job.id)

    async def _translate(self, asked: AskedDocument, context: CallContext) -> bytes:
        try:
            return await self._documents.translate(asked, context)
        except DragomanError:
            raise
        except Exception as error:
            raise unexpected(error) from None

    async def _run(self, job: DocumentJob, translating: Awaitable[bytes]) -> bytes:
        """Wait for a translation, and store its result or error where other servers find it."""
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
        """Store the result in the folder, if there is one; returns the content to keep in memory.

        Raises:
            InternalError: the folder cannot store it.
        """
        if self._folder is None:
            return content
        written = "" if error is None else to_text_error(error).SerializeToString().hex()
        entry = _entry(job)._replace(is_done=True, error=written)
        await self._on_disk(self._folder.keep, job.id, entry, content)
        return b""

    async def _beat(self, job_id: str) -> None:
        """Mark a job as alive, periodically."""
        while self._folder is not None:
            await asyncio.sleep(BEAT_S)
            await self._tried(self._folder.touch, job_id)

    def _forget_others(self, kept: Container[str]) -> None:
        """Forget finished jobs that were fetched from another server."""
        for job in self._of():
            if job.task.done() and job.id not in kept:
                del self._jobs[job.id]

    def _end(self, job: DocumentJob) -> None:
        if job.task.cancelled():
            self._jobs.pop(job.id, None)
            return
        if job.task.exception() is not None:  # read it, so that asyncio does not log an error that nobody fetches
            job.size = 0
        asyncio.get_running_loop().call_later(KEEP_S, self._expire, job.id)  # the timer holds no document

    def _expire(self, job_id: str) -> None:
        self._jobs.pop(job_id, None)
        if self._folder is not None:
            self._sweeping = asyncio.create_task(self._tried(self._folder.sweep, KEEP_S))

    def _outgoing(self, new: DocumentJob) -> list[DocumentJob]:
        """List the client's oldest unfetched results that have to go to make room for a document.

        Raises:
            ConcurrencyLimitedError: the client has too many running jobs, or too large ones.
            QueueFullError: all clients together have too many, or too large ones.
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
        """Give the jobs of a client, or of all clients, oldest first."""
        return [job for job in self._jobs.values() if client in (None, job.client)]

    async def _on_disk(self, work: Callable[..., _T], *arguments: object) -> _T:
        """Have a folder do something, on a thread.

        Raises:
            InternalError: it cannot; the log says why.
        """
        try:
            return await asyncio.to_thread(work, *arguments)
        except OSError as error:
            self._handlers.planner.metrics.document_failures_total.inc()
            raise unexpected(error) from None

    async def _tried(self, work: Callable[..., object], *arguments: object) -> None:
        """Have a folder do something if it can; where it cannot, the log says why."""
        with suppress(InternalError):
            await self._on_disk(work, *arguments)


def _is_translated(job: DocumentJob) -> bool:
    return job.task.done() and (job.task.cancelled() or job.task.exception() is None)


def _entry(job: DocumentJob) -> Entry:
    return Entry(job.protocol, job.client, job.file_name, job.key)


def _kept(job_id: str, entry: Entry, content: bytes) -> DocumentJob:
    """Make a job from a document in the folder."""
    job = DocumentJob(CallProtocol(entry.protocol), entry.client, entry.file_name, len(content), job_id, entry.key)
    job.task = asyncio.get_running_loop().create_future()
    if entry.error:
        job.task.set_exception(from_text_error(pb.TextError.FromString(bytes.fromhex(entry.error))))
        job.task.exception()  # read it, so that asyncio does not log it
    elif entry.is_done:
        job.task.set_result(content)
    return job


def _refuse_running(jobs: Sequence[DocumentJob], limit: int, error: type[DragomanError], whose: str) -> None:
    if sum(not job.task.done() for job in jobs) >= limit:
        raise error(f"at most {limit} documents {whose} are translated at a time", retry_delay_s=_RETRY_S)


def _fits(new: DocumentJob, jobs: Sequence[DocumentJob], share: int) -> bool:
    """Tell whether a document fits beside other jobs, within 1 / `share` of the limits."""
    return new.size + sum(job.size for job in jobs) <= MAX_BYTES // share and len(jobs) < MAX_JOBS // share
