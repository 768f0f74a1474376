"""Whose slice of work is next: client after client, so that one with much to do does not keep the others waiting.

Splitting texts and answering for them takes the interpreter, of which there is one, whether on the event loop or on a
thread. So of all that is not small, one slice is done at a time, and the clients who have any take turns. Small calls
take no turn at all: between two slices, the event loop does all that is due.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Gives one turn at a time, round robin by client and in order of arrival within one; lives on the event loop."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # the next client first

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn of a client, and have it for the time of one slice of work."""
        if self._taken:
            await self._wait(client)
        self._taken = True
        try:
            yield
            await asyncio.sleep(0)  # for all that takes no turns
        finally:
            self._pass_on(client)

    async def _wait(self, client: str) -> None:
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(given)
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():  # it was given in the very moment
                self._pass_on(client)
            raise

    def _pass_on(self, client: str) -> None:
        """Give the turn of a client to the first who still waits for one; this client is the last again."""
        if client in self._waiting:
            self._waiting.move_to_end(client)
        self._taken = False
        while self._waiting and not self._taken:
            following, queue = next(iter(self._waiting.items()))
            given = queue.popleft()
            if not queue:
                del self._waiting[following]
            if not given.cancelled():
                self._taken = True
                given.set_result(None)
