"""The server's side of a document process: it gets texts from the process, and sends translations."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import structlog

from dragoman.documents.document import DocumentText
from dragoman.errors import DragomanError, InternalError, InvalidRequestError, QueueFullError
from plugins.documents import child, frames
from service.failures import failed
from service.telemetry.metrics import Metrics

_PROGRAM: Final = (sys.executable, "-P", "-m", "dragoman_server", child.__name__)
_SHOWN: Final = 100  # characters of a name
_EXTRA: Final = 'pip install "dragoman-server[documents]"'
_RETRY_S: Final = 5.0

_log = structlog.get_logger()


class DocumentProcess:
    """A document whose process starts with `read`, and ends with the context manager.

    Attributes:
        protects_placeholders: whether placeholders in the texts must stay unchanged; known after `read`.
        languages: the parts of each of `Document.languages`; known after `read`.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._failures = metrics.document_failures_total
        self.protects_placeholders = False
        self.languages: list[list[str]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> "DocumentProcess":
        """Begin without a process."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the process in any state."""
        if self._process is None:
            return
        self._process.kill()
        self._writer.close()
        try:
            await self._ended()
        finally:  # also if the call is cancelled again
            self._process.wait()

    async def read(self, name: str, content: bytes) -> None:
        """Read a document.

        Args:
            name: the name of the file; its suffix decides the format.

        Raises:
            InvalidRequestError: the document is too large, invalid, or of a format that the server cannot read.
            DragomanError: reading failed for another reason.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            self._reader, self._writer = await asyncio.open_connection(sock=ours)
            try:
                self._process = subprocess.Popen(_PROGRAM, stdin=theirs.fileno(), stdout=theirs.fileno())
            except BaseException:
                self._writer.close()
                raise
        await self._send(name.encode(), content)
        answer = await self._answer()
        if module := answer.get("missing"):
            raise InvalidRequestError(
                f'file: {name[-_SHOWN:]!r} needs the extra "documents" of dragoman-server, which is not installed '
                f"(no module {module!r}): {_EXTRA}"
            )
        if reason := answer.get("refused"):
            raise invalid(reason)
        self.protects_placeholders = answer["protects_placeholders"]
        self.languages = answer["languages"]

    async def texts(self, count: int) -> list[DocumentText]:
        """Give the next texts, at most `count`; none at the end; raises as :meth:`read`."""
        await self._ask(count)
        return [DocumentText(*text) for text in (await self._answer())["texts"]]

    async def take(self, translations: Mapping[int, str]) -> None:
        """Send translations of texts, as HTML, by text number; raises as :meth:`read`."""
        await self._ask(child.TAKE, list(translations.items()))

    async def speak(self, source: str, target: str) -> None:
        """Send the source and target language of the document; raises as :meth:`read`."""
        await self._ask(child.SPEAK, [source, target])

    async def write(self) -> bytes:
        """Give the content of the document with its translations; raises as :meth:`read`."""
        await self._ask(child.WRITE)
        await self._answer()
        return await self._receive()

    async def _ask(self, *what: object) -> None:
        await self._send(*(json.dumps(each).encode() for each in what))

    async def _send(self, *contents: bytes) -> None:
        """Send frames; those of another task come before or behind all of them."""
        for content in contents:
            frames.write(self._writer, content)
        with suppress(ConnectionError):  # the process has ended: its answer or exit code says why
            await self._writer.drain()

    async def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(await self._receive())
        if "failed" in answer:
            raise self._failed("a document failed", at=answer["failed"].splitlines())
        return answer

    async def _receive(self) -> bytes:
        try:
            return await frames.receive(self._reader)
        except (EOFError, ConnectionError):
            raise self._why(await self._ended()) from None

    async def _ended(self) -> int:
        """Wait until the process ends, and return its exit code; negative if a signal ended it."""
        assert self._process is not None
        with suppress(ConnectionError):
            await self._reader.read()  # the process closes its end only when it ends
        return self._process.wait()

    def _why(self, code: int) -> DragomanError:
        """Explain why the process has ended.

        Args:
            code: its exit code, as in `subprocess`.
        """
        if code == child.EXIT_MEMORY:
            return invalid(f"takes more than {child.MEMORY_BYTES // 2**20} MiB of memory: divide it")
        if code == -signal.SIGXCPU:
            return invalid(f"takes more than {child.CPU_S} s of processor time: divide it")
        error = self._failed("the process of a document was ended, or ended by itself", exit_code=code)
        if code == -signal.SIGKILL:
            return QueueFullError("the machine has no memory for the document now", retry_delay_s=_RETRY_S)
        return error

    def _failed(self, event: str, **values: Any) -> InternalError:
        """Make the error for a failure that the document did not cause."""
        self._failures.inc()
        _log.error(event, **values)
        return failed()


def invalid(reason: str) -> InvalidRequestError:
    """Make the error for an invalid file."""
    return InvalidRequestError(f"file: {reason}", violations=[("file", reason)])
