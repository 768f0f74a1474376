"""The incoming messages of a call, until the caller ends them or the server stops reading."""

import asyncio
from collections.abc import AsyncIterator

from dragoman.v1 import translation_pb2 as pb


class Inbox:
    """Gives one message after another.

    Args:
        requests: the messages; raises a DragomanError for an invalid one.

    Attributes:
        cut: whether reading ended because the inbox was closed; more messages may have followed.
    """

    def __init__(self, requests: AsyncIterator[pb.BatchTranslateTextRequest]) -> None:
        self.cut = False
        self._requests = requests
        self._reading: asyncio.Timeout | None = None
        self._closed = False

    def close(self) -> None:
        """Stop reading messages."""
        self._closed = True
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(0.0)

    async def next(self) -> pb.BatchTranslateTextRequest | None:
        """Wait for the next message; None at the end.

        Raises:
            InvalidRequestError: the message is invalid.
        """
        if self._closed:
            self.cut = True
            return None
        reading = self._reading = asyncio.timeout(None)
        try:
            async with reading:
                message = await anext(self._requests, None)
        except TimeoutError:
            if not reading.expired():
                raise
            message = None
        finally:
            self._reading = None
        if message is None:
            self.cut = self._closed
        return message
