"""The messages of a caller who sends many, until there are no more or the server does not want more."""

import asyncio
from collections.abc import AsyncIterator

from dragoman.v1 import translation_pb2 as pb


class Inbox:
    """Gives one message after the other.

    Args:
        requests: the messages; raises a DragomanError for an invalid one.

    Attributes:
        cut: whether it ended because it was closed, with messages perhaps still to come.
    """

    def __init__(self, requests: AsyncIterator[pb.BatchTranslateTextRequest]) -> None:
        self.cut = False
        self._requests = requests
        self._reading: asyncio.Timeout | None = None
        self._closed = False

    def close(self) -> None:
        """Read no further message."""
        self._closed = True
        if self._reading is not None and not self._reading.expired():
            self._reading.reschedule(0.0)

    async def next(self) -> pb.BatchTranslateTextRequest | None:
        """Wait for a message; None at the end.

        Raises:
            InvalidRequestError: it is not valid.
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
