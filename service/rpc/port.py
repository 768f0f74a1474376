"""A port that is listened on until it is closed: a server that accepts no calls any more is followed by another."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

import structlog

from dragoman.address import Address
from service.rpc import accept_loop
from service.telemetry.metrics import Metrics

_LOOK_PERIOD_S: Final = 0.05
# The server before lets go of the port within milliseconds.
_BIND_TIMEOUT_S: Final = 5.0
# A server that ends at once would end at once again: after that number in a row, an operator must look.
_SHORT_LIFE_S: Final = 1.0
_SHORT_LIVES: Final = 5
# Calls of a server that accepts no new ones may go on for so long.
_LAST_CALLS_S: Final = 3600.0

_log = structlog.get_logger()


class Port:
    """One port; needs a running event loop.

    Args:
        make_server: makes a gRPC server on an address, not started, and says which port it got; raises OSError.

    Attributes:
        lost: set once nobody listens and nobody can.
    """

    def __init__(self, make_server: Callable[[Address], tuple[Any, int]], metrics: Metrics) -> None:
        self.lost = asyncio.Event()
        self._make_server = make_server
        self._metrics = metrics
        self._servers: list[Any] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, address: Address) -> Address:
        """Listen; gives the address with the port that was chosen, where it is 0.

        Raises:
            OSError: that is not possible.
        """
        address = await self._start(address)
        self._begin(self._watch(address))
        return address

    async def close(self, grace_s: float) -> None:
        """Accept no more calls; end those that run after a while."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(server.stop(grace_s) for server in self._servers))

    async def _start(self, address: Address) -> Address:
        server, port = self._make_server(address)
        self._servers.append(server)  # first: it has to be stopped, whatever becomes of its start
        await server.start()
        return address._replace(port=port)

    async def _watch(self, address: Address) -> None:
        """Listen again whenever the server of the moment has ended by itself, as long as that helps."""
        try:
            await self._listen_again_and_again(address)
        except Exception as error:
            _log.critical("no calls are accepted any more", reason=str(error))
        self.lost.set()

    async def _listen_again_and_again(self, address: Address) -> NoReturn:
        short_lives = 0
        while True:
            server, began_s = self._servers[-1], time.monotonic()
            while (why := accept_loop.why_ended(server)) is None:
                await asyncio.sleep(_LOOK_PERIOD_S)
            short_lives = short_lives + 1 if time.monotonic() < began_s + _SHORT_LIFE_S else 0
            error = why if isinstance(why, BaseException) else None
            _log.error("no calls were accepted any more: listening again", exc_info=error)
            if short_lives == _SHORT_LIVES:
                raise RuntimeError(f"that ended at once, {short_lives} times in a row")
            self._begin(self._finish(server))
            await self._start_again(address)
            self._metrics.listener_restarts_total.inc()

    async def _start_again(self, address: Address) -> None:
        """Listen once the port is free.

        Raises:
            OSError: it is not, for seconds.
        """
        give_up_s = time.monotonic() + _BIND_TIMEOUT_S
        while True:
            try:
                await self._start(address)
                return
            except OSError:
                if time.monotonic() > give_up_s:
                    raise
            await asyncio.sleep(_LOOK_PERIOD_S)

    async def _finish(self, server: Any) -> None:
        """Let the calls of a server that has ended go on."""
        await server.stop(_LAST_CALLS_S)
        self._servers.remove(server)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
