"""The answers of a call that has many, sent so that the status always follows them."""

import asyncio
from typing import Any, Final

_HEADERS_TIMEOUT_S: Final = 5.0  # of a connection that takes nothing any more


class Answers:
    """Sends headers once, and then messages.

    Core takes headers once, and grpcio counts them as sent only when they are: a status after headers that were
    interrupted would carry them again, be refused by Core, and never reach the client (seen in grpcio 1.85). So headers
    go alone, before the first message, and what ends the call meanwhile waits for them.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._begun = False

    async def begin(self) -> None:
        """Send the headers, if they have not been sent."""
        if self._begun:
            return
        self._begun = True
        sending = asyncio.ensure_future(self._context.send_initial_metadata(()))
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait([sending], timeout=_HEADERS_TIMEOUT_S)
            raise

    async def send(self, message: Any) -> None:
        """Send a message as soon as the client takes it."""
        await self.begin()
        await self._context.write(message)
