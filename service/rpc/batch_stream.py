"""One call of BatchTranslateText: texts come in and answers go out for as long as the caller likes.

A text is in flight from when it was read until its answer was taken by the transport. The texts in flight are bounded.
So a caller that sends faster than texts are translated has to wait, and one that does not read its answers too. Where
answers are wanted in order, no more of them are put aside than may be in flight.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import grpc.aio
from google.protobuf.message import Message

from dragoman.errors import DrainingError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Call, Reads, Text
from service.calls.text_worker import TextWorker
from service.rpc import validation
from service.rpc.answer import in_messages, sendable, translated
from service.rpc.request_parsing import parsed
from service.settings import Settings
from service.telemetry.call_stats import CallStats


class Context(Protocol):
    """What is used of `grpc.aio.ServicerContext`, which has no types."""

    async def read(self) -> Any:
        """The next message of the caller, or `grpc.aio.EOF`."""

    async def write(self, message: Message) -> None:
        """Send one message, as soon as the client takes it."""

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Let the client know that its call is accepted."""


class Inbox:
    """The messages of a caller, until there are no more or the server does not want more."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading: asyncio.Timeout | None = None
        self._closed = False
        self.cut = False  # whether it ended because it was closed, with messages perhaps still to come

    def close(self) -> None:
        """Read no further message."""
        self._closed = True
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(0.0)

    async def next(self) -> pb.BatchTranslateTextRequest | None:
        """Wait for a message; None at the end.

        Raises:
            InvalidRequestError: it is none.
        """
        message: Any = grpc.aio.EOF
        if not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._reading:
                    message = await self._context.read()
            self._reading = None
        if message is grpc.aio.EOF:
            self.cut = self._closed
            return None
        request: pb.BatchTranslateTextRequest = parsed(message)
        return request


# Texts, the first of which has this number within the call, to documents.
Prepare = Callable[[Sequence[str], int], Awaitable[Mapping[int, Text]]]


class BatchStream:
    """The texts of one call between its inbox and its answers; lives on the event loop."""

    def __init__(
        self,
        inbox: Inbox,
        context: Context,
        call: Call,
        prepare: Prepare,
        read: Reads,
        text_work: TextWorker,
        record: CallStats,
        settings: Settings,
        *,
        in_order: bool,
    ) -> None:
        """A stream whose config has been read.

        Args:
            inbox: the rest of the caller's messages.
            context: where answers go.
            call: without texts; tells of each that is finished.
            prepare: makes documents for the call.
            read: reads what of them has not been read.
            text_work: puts its translations together.
            record: of the call.
            settings: the limits.
            in_order: whether answers go out in the order of the texts.
        """
        self._inbox = inbox
        self._context = context
        self._call = call
        self._prepare = prepare
        self._read_texts = read
        self._text_work = text_work
        self._record = record
        self._settings = settings
        self._in_order = in_order
        # No token is shorter than a byte: one stream alone does not fill the queue of an idle engine.
        self._limit_bytes = settings.queue_source_tokens
        self._limit_texts = settings.max_contents
        self._in_flight: dict[int, int] = {}  # bytes of each text
        self._in_flight_bytes = 0
        self._finished: set[int] = set()  # of those in flight
        self._answered = 0  # in order: the number of the text that is to be answered next
        self._room = asyncio.Event()

    async def run(self) -> None:
        """Answer all texts.

        Raises:
            InvalidRequestError: a message is not as it should be.
            DrainingError: the server is shutting down; what was read has been answered.
            DragomanError: the engine failed.
        """
        await self._context.send_initial_metadata(())
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(lambda _: self._call.wake())
        try:
            while self._in_flight or not reader.done():
                self._finished.update(filter(self._call.finished, await self._call.moved()))
                if reader.done():
                    reader.result()
                if ready := self._ready():
                    await self._answer(ready)
            reader.result()
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        if self._inbox.cut:
            raise DrainingError(
                f"the server is shutting down: it has answered the first {self._record.texts} texts, and read no other",
                metadata={"answered_texts": str(self._record.texts)},
            )

    async def _read(self) -> None:
        """Take texts in as long as there are any, and only while there is room."""
        while (message := await self._inbox.next()) is not None:
            validation.check_contents(message, self._settings)
            contents = list(message.contents)
            while contents:
                if sizes := self._sizes_of_fitting(contents):
                    await self._admit(contents[: len(sizes)], sizes)
                    del contents[: len(sizes)]
                else:
                    await self._await_room()

    def _sizes_of_fitting(self, contents: Sequence[str]) -> list[int]:
        """The bytes of each of the first texts, as many as there is room for; one always fits into an empty window."""
        sizes: list[int] = []
        room_bytes = self._limit_bytes - self._in_flight_bytes
        for text in contents[: self._limit_texts - len(self._in_flight)]:
            size = len(text.encode())
            room_bytes -= size
            if room_bytes < 0 and (sizes or self._in_flight):
                break
            sizes.append(size)
        return sizes

    async def _admit(self, contents: Sequence[str], sizes: Sequence[int]) -> None:
        """Have texts translated. A full queue does not fail them: they wait until it has room."""
        first = self._record.texts
        self._record.texts += len(contents)
        self._in_flight.update(enumerate(sizes, first))
        self._in_flight_bytes += sum(sizes)
        await self._call.feed(await self._prepare(contents, first), self._read_texts)

    async def _await_room(self) -> None:
        self._room.clear()
        await self._room.wait()

    def _ready(self) -> list[int]:
        """The texts that are to be answered now."""
        if not self._in_order:
            return sorted(self._finished)
        end = self._answered
        while end in self._finished:
            end += 1
        return list(range(self._answered, end))

    async def _answer(self, ready: Sequence[int]) -> None:
        """Answer texts, with one message if they fit."""
        max_bytes, model = self._settings.max_answer_bytes, self._record.model
        outcomes = await self._text_work.outcomes(self._record.caller, self._call, ready)
        answers = [
            pb.BatchTranslation(content_index=index, translation=translated(sendable(outcome, max_bytes), model))
            for index, outcome in outcomes.items()
        ]
        for group in in_messages(answers, max_bytes):
            await self._send(group)

    async def _send(self, answers: Sequence[pb.BatchTranslation]) -> None:
        """Answer texts with one message, and make room for others."""
        request_id = "" if self._answered else self._record.request_id
        await self._context.write(pb.BatchTranslateTextResponse(translations=answers, request_id=request_id))
        self._answered += len(answers)
        self._record.failed_texts += sum(answer.translation.HasField("text_error") for answer in answers)
        for index in (answer.content_index for answer in answers):
            self._call.forget(index)
            self._finished.remove(index)
            self._in_flight_bytes -= self._in_flight.pop(index)
        self._room.set()
