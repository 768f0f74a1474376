"""Documents that are being translated, and those that wait to be fetched: in memory only, and only for a while."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dragoman.errors import ConcurrencyLimitedError, DragomanError, QueueFullError
from service.calls.text_worker import unexpected
from service.handlers.context import CallContext
from service.handlers.documents import METHOD, AskedDocument, Documents
from service.handlers.translation import TranslationHandlers
from service.wire import Protocol

KEEP_S: Final = 600.0  # a document that nobody fetches
# Of all clients; one client may have half of each.
MAX_RUNNING: Final = 4  # each holds its document, unpacked
MAX_JOBS: Final = 256
MAX_BYTES: Final = 64 * 2**20  # of uploads that are being translated, and of translated documents
_RETRY_S: Final = 5.0
_NAME_BYTES: Final = 24  # of randomness, so that nobody guesses the name of another's document


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
        task: gives the content of the translated document, or raises a DragomanError.
    """

    protocol: Protocol
    client: str
    file_name: str
    size: int
    id: str = field(default_factory=lambda: secrets.token_hex(_NAME_BYTES))
    key: str = field(default_factory=lambda: secrets.token_hex(_NAME_BYTES))
    task: asyncio.Task[bytes] = field(init=False)


class DocumentJobs:
    """All of them; lives on the event loop.

    Args:
        documents: translates them.
        handlers: are told of those that are refused.
    """

    def __init__(self, documents: Documents, handlers: TranslationHandlers) -> None:
        self._documents = documents
        self._handlers = handlers
        self._jobs: dict[str, DocumentJob] = {}

    async def begin(self, asked: AskedDocument, context: CallContext) -> DocumentJob:
        """Begin to translate a document.

        Args:
            asked: the document.
            context: of the call.

        Raises:
            ConcurrencyLimitedError: there are too many of the client.
            QueueFullError: there are too many of all.
            DragomanError: no call of the client is let in now.
        """
        job = DocumentJob(context.protocol, context.caller.name, asked.name, len(asked.content))
        try:
            self._let_in(job)
        except (ConcurrencyLimitedError, QueueFullError) as error:
            self._handlers.refuse(METHOD, context, error)
        job.task = asyncio.create_task(self._run(job, asked, context))
        job.task.add_done_callback(lambda _: self._end(job))
        self._jobs[job.id] = job
        await asyncio.sleep(0)  # its call begins, and is let in or refused before it waits for anything
        if job.task.done():
            self.forget(job)
            job.task.result()
        return job

    def find(self, protocol: Protocol, job_id: str) -> DocumentJob | None:
        """Give a job of a protocol; None where it has none of this name, or none any more."""
        job = self._jobs.get(job_id)
        return job if job and job.protocol is protocol else None

    def forget(self, job: DocumentJob) -> None:
        """Keep nothing of a job any more; one that runs is cancelled."""
        if self._jobs.pop(job.id, None):
            job.task.cancel()

    async def _run(self, job: DocumentJob, asked: AskedDocument, context: CallContext) -> bytes:
        try:
            content = await self._documents.translate(asked, context)
        except DragomanError:
            raise
        except Exception as error:
            raise unexpected(error) from None
        job.size = len(content)
        return content

    def _end(self, job: DocumentJob) -> None:
        if job.task.cancelled():
            self._jobs.pop(job.id, None)
            return
        if job.task.exception() is not None:  # asked, so that asyncio does not log what nobody fetches
            job.size = 0
        asyncio.get_running_loop().call_later(KEEP_S, self._jobs.pop, job.id, None)  # the timer keeps no document

    def _let_in(self, new: DocumentJob) -> None:
        """Make room for a document: the client's oldest ones that it has not fetched are forgotten, if need be.

        Raises:
            ConcurrencyLimitedError: the client has too many on their way, or too large ones.
            QueueFullError: all clients together have.
        """
        _refuse_running(self._of(new.client), MAX_RUNNING // 2, ConcurrencyLimitedError, "of one client")
        _refuse_running(self._of(), MAX_RUNNING, QueueFullError, "together")
        for job in filter(lambda job: job.task.done(), self._of(new.client)):
            if _fits(new, self._of(new.client), 2) and _fits(new, self._of(), 1):
                return
            self.forget(job)
        if not _fits(new, self._of(new.client), 2):
            message = f"documents of one client may take {MAX_BYTES // 2} bytes together"
            raise ConcurrencyLimitedError(message, retry_delay_s=_RETRY_S)
        if not _fits(new, self._of(), 1):
            raise QueueFullError(f"documents may take {MAX_BYTES} bytes together", retry_delay_s=_RETRY_S)

    def _of(self, client: str | None = None) -> list[DocumentJob]:
        """Give the jobs of a client, or of all, the oldest first."""
        return [job for job in self._jobs.values() if client in (None, job.client)]


def _refuse_running(jobs: Sequence[DocumentJob], limit: int, error: type[DragomanError], whose: str) -> None:
    if sum(not job.task.done() for job in jobs) >= limit:
        raise error(f"at most {limit} documents {whose} are translated at a time", retry_delay_s=_RETRY_S)


def _fits(new: DocumentJob, jobs: Sequence[DocumentJob], share: int) -> bool:
    """Tell whether a document has room beside others, of all that there is or of a share."""
    return new.size + sum(job.size for job in jobs) <= MAX_BYTES // share and len(jobs) < MAX_JOBS // share
