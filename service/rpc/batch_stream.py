"""One call of BatchTranslateText: texts come in and answers go out for as long as the caller likes.

The texts that are on their way are bounded, see `calls.window`. Where answers are wanted in order, no more of them are
put aside than may be on their way.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

import grpc.aio
from google.protobuf.message import Message

from dragoman.errors import DrainingError
from dragoman.v1 import translation_pb2 as pb
from service.calls.call import Call
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


class BatchStream:
    """The texts of one call between its inbox and its answers; lives on the event loop."""

    def __init__(
        self, inbox: Inbox, context: Context, call: Call, record: CallStats, settings: Settings, *, in_order: bool
    ) -> None:
        """A stream whose config has been read.

        Args:
            inbox: the rest of the caller's messages.
            context: where answers go.
            call: without texts, and with a window.
            record: of the call.
            settings: the limits.
            in_order: whether answers go out in the order of the texts.
        """
        self._inbox = inbox
        self._context = context
        self._call = call
        self._record = record
        self._settings = settings
        self._in_order = in_order
        self._request_id = record.request_id  # said once, by the first answer

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
            while self._call.held or not reader.done():
                await self._call.moved()
                if reader.done():
                    reader.result()
                if ready := self._call.ready(in_order=self._in_order):
                    await self._answer(ready)
            reader.result()
        finally:
            self._record.texts = self._call.count
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        if self._inbox.cut:
            count = self._call.count
            raise DrainingError(
                f"the server is shutting down: it has answered the first {count} texts, and read no other",
                metadata={"answered_texts": str(count)},
            )

    async def _read(self) -> None:
        """Take texts in as long as there are any, and only while there is room."""
        while (message := await self._inbox.next()) is not None:
            validation.check_contents(message, self._settings)
            await self._call.feed(message.contents)

    async def _answer(self, ready: Sequence[int]) -> None:
        """Answer texts, with one message if they fit."""
        max_bytes, model = self._settings.max_answer_bytes, self._record.model
        answers = [
            pb.BatchTranslation(content_index=number, translation=translated(sendable(result, max_bytes), model))
            for number, result in (await self._call.results(ready)).items()
        ]
        for group in in_messages(answers, max_bytes):
            await self._send(group)

    async def _send(self, answers: Sequence[pb.BatchTranslation]) -> None:
        """Answer texts with one message, and make room for others."""
        await self._context.write(pb.BatchTranslateTextResponse(translations=answers, request_id=self._request_id))
        self._request_id = ""
        self._record.failed_texts += sum(answer.translation.HasField("text_error") for answer in answers)
        self._call.forget([answer.content_index for answer in answers])
