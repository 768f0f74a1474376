"""The texts of one call, from its inbox to its answers.

The number of pending texts is bounded, see :class:`Window`. If answers must be in order, finished texts that wait for
an earlier one count as pending too.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager

from dragoman.errors import DrainingError, FieldViolation
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.call import FedCall
from plugins.batch.inbox import Inbox
from service.calls.limits import raise_if_any
from service.handlers import validation
from service.handlers.answer import AROUND_BYTES, FIELD_BYTES, sendable, translated
from service.handlers.route import Route
from service.settings import Settings
from service.telemetry.access_log import CallStats


class Batch:
    """A call from its inbox to its answers; lives on the event loop."""

    def __init__(
        self,
        inbox: Inbox,
        call: FedCall,
        route: Route,
        record: CallStats,
        settings: Settings,
        *,
        in_order: bool,
    ) -> None:
        """Make a batch after its config was read.

        Args:
            inbox: the remaining messages of the caller.
            call: a call that has no texts yet.
        """
        self._inbox = inbox
        self._call = call
        self._route = route
        self._record = record
        self._settings = settings
        self._in_order = in_order
        self._request_id = record.request_id  # sent once, with the first answer
        self._reader: asyncio.Task[None]

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Read texts during the block; if the server stops reading, report at the end how many texts were answered.

        Raises:
            DrainingError: the server is shutting down; all texts that it read are answered.
        """
        self._reader = asyncio.create_task(self._read())
        self._reader.add_done_callback(lambda _: self._call.wake())
        try:
            yield
        finally:
            self._record.texts = self._call.count
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self._inbox.cut:
            count = self._call.count
            raise DrainingError(
                f"the server is shutting down: it has answered the first {count} texts, and read no other",
                metadata={"answered_texts": str(count)},
            )

    async def ready(self) -> list[int] | None:
        """Wait for texts to answer, and give their numbers; None when all are answered and no more will come.

        Raises:
            InvalidRequestError: a message is invalid.
            DragomanError: the engine failed.
        """
        while self._call.held or not self._reader.done():
            await self._call.moved()
            if self._reader.done():
                self._reader.result()
            if ready := self._call.ready(in_order=self._in_order):
                return ready
        self._reader.result()
        return None

    async def answers(self, ready: Sequence[int]) -> list[list[pb.BatchTranslation]]:
        """Give the answers to finished texts, in groups that each fit a message."""
        max_bytes = self._settings.max_answer_bytes
        answers = [
            pb.BatchTranslation(content_index=number, translation=translated(sendable(result, max_bytes), self._route))
            for number, result in (await self._call.results(ready)).items()
        ]
        return list(in_messages(answers, max_bytes))

    def message(self, answers: Sequence[pb.BatchTranslation]) -> pb.BatchTranslateTextResponse:
        """Make a message with these answers."""
        return pb.BatchTranslateTextResponse(translations=answers, request_id=self._request_id)

    def answered(self, answers: Sequence[pb.BatchTranslation]) -> None:
        """Free the space of answered texts, after the transport has taken their message."""
        self._request_id = ""
        self._record.failed_texts += sum(answer.translation.HasField("text_error") for answer in answers)
        self._call.forget([answer.content_index for answer in answers])

    async def _read(self) -> None:
        """Feed all texts to the call, as fast as there is room."""
        while (message := await self._inbox.next()) is not None:
            check_contents(message, self._settings)
            await self._call.feed(message.contents)


def check_contents(request: pb.BatchTranslateTextRequest, settings: Settings) -> None:
    """Check a message after the first one."""
    violations = []
    if request.HasField("config"):
        violations.append(FieldViolation("config", "must be set in the first message only"))
    raise_if_any([*violations, *validation.bad_count(request.contents, settings)])


def in_messages(answers: Iterable[pb.BatchTranslation], max_bytes: int) -> Iterator[list[pb.BatchTranslation]]:
    """Group answers, each of which is :func:`sendable`, so that each group fits a message."""
    group: list[pb.BatchTranslation] = []
    used_bytes = AROUND_BYTES
    for answer in answers:
        size = answer.ByteSize() + FIELD_BYTES
        if group and used_bytes + size > max_bytes:
            yield group
            group, used_bytes = [], AROUND_BYTES
        group.append(answer)
        used_bytes += size
    if group:
        yield group
