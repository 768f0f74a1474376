"""The order of the slices of work: clients take turns, so that a client with much work does not delay the others.

Splitting texts and making answers needs the Python interpreter, which runs one thread at a time, the event loop or
another. So one slice of all larger work is done at a time, and the clients with such work take turns. Small calls take
no turns: between two slices, the event loop does all of its other work.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Gives one turn at a time, round robin by client, and in order of arrival for each; lives on the event loop."""

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
            await asyncio.sleep(0)  # for work that takes no turns
        finally:
            self._pass_on(client)

    async def _wait(self, client: str) -> None:
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(given)
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():  # the turn was given in the same moment
                self._pass_on(client)
            raise

    def _pass_on(self, client: str) -> None:
        """Give the turn of a client to the first client that still waits; this client becomes the last one."""
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
