"""The answers of a call that has several, sent so that the status always follows the answers."""

import asyncio
from typing import Any, Final

_HEADERS_TIMEOUT_S: Final = 5.0  # for a connection that takes no more data


class Answers:
    """Sends headers once, and then messages.

    gRPC Core takes headers once, and grpcio counts headers as sent only when they are: after interrupted headers, a
    status would carry the headers again, be refused by Core, and never reach the client (seen in grpcio 1.85). So the
    headers are sent alone, before the first message, and an end of the call meanwhile waits for them.
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
        # If the client has left, nobody awaits the error, and asyncio would log it.
        sending.add_done_callback(lambda sent: sent.cancelled() or sent.exception())
        try:
            await asyncio.shield(sending)
        except asyncio.CancelledError:
            await asyncio.wait([sending], timeout=_HEADERS_TIMEOUT_S)
            raise

    async def send(self, message: Any) -> None:
        """Send a message as soon as the client takes it."""
        await self.begin()
        await self._context.write(message)
