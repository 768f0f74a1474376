"""Connections to the HTTP port: accepting, limiting, supervising and ending them."""

import asyncio
import errno
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, Final

import structlog
from uvicorn.config import Config
from uvicorn.server import ServerState

from dragoman.address import Address
from plugins.http.connection import Connection
from plugins.http.connection_filter import drop_requests
from plugins.http.forwarded import TrustedProxies
from service.security.addresses import bound, cannot_listen
from service.security.connection_limits import HANDSHAKE_TIMEOUT_S
from service.security.hosts import host_of
from service.settings import Settings
from service.telemetry.metrics import Metrics

# An idle connection costs a file descriptor; proxies usually keep connections for about a minute.
IDLE_TIMEOUT_S: Final = 120.0
_FLAG: Final = "--http-address"
_BACKLOG: Final = 1024
_LOOK_PERIOD_S: Final = 1.0
_ERROR_PAUSE_S: Final = 0.1  # after errors such as a lack of descriptors
_POLL_S: Final = 0.01
_CLOSED: Final = -1  # the descriptor of a closed socket
_HANDSHAKE_S: Final = 0.1  # of TCP: a connection that has begun is complete then, also on a busy machine
# A client may be about to send a call over an idle connection: it gets an answer that ends the connection.
_LEAVE_S: Final = 0.5
_TLS_END_S: Final = 5.0  # time for the client to answer TLS's end of connection

_log = structlog.get_logger()


class Connections:
    """All connections to one port; needs a running event loop.

    Args:
        app: the ASGI application.
        tls: gives the context of a new connection; None: connections use plain text.
        proxies: trusted proxies; their connections have no limit per host.

    Attributes:
        lost: set if connections are no longer accepted, though :meth:`close` was not called.
    """

    def __init__(
        self,
        app: Any,
        settings: Settings,
        tls: Callable[[], ssl.SSLContext] | None,
        proxies: TrustedProxies,
        metrics: Metrics,
    ) -> None:
        self.lost = asyncio.Event()
        self._config = Config(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            interface="asgi3",
            proxy_headers=False,
        )
        self._config.timeout_keep_alive = IDLE_TIMEOUT_S  # type: ignore[assignment]  # passed on to the event loop
        self._config.load()
        self._settings = settings
        self._tls = tls
        self._proxies = proxies
        self._closed = metrics.closed_connections_total.labels("HOST_LIMIT")
        self._state = ServerState()
        self._hosts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._is_leaving = False

    @property
    def count(self) -> int:
        """Connections that are open or being opened."""
        return self._hosts.total()

    def open(self, address: Address) -> Address:
        """Listen on an address; returns it with the chosen port, if its port is 0.

        Raises:
            OSError: listening failed.
        """
        self._sockets = bound(address, _FLAG, shared=self._settings.processes > 1)
        for listening in self._sockets:
            try:
                listening.listen(_BACKLOG)
            except OSError as error:  # the other of two sockets that were bound at the same time listens already
                raise cannot_listen(address, _FLAG, error) from error
            listening.setblocking(False)
            self._listen(listening)
        self._begin(self._look_after())
        return address._replace(port=self._sockets[0].getsockname()[1])

    async def close(self, grace_s: float) -> None:
        """Stop accepting; end idle connections soon, and those with an answer in progress after `grace_s`."""
        self._is_leaving = True
        for connection in self._open():
            connection.leave()
        for listening in self._sockets:
            drop_requests(listening)
        await asyncio.sleep(_HANDSHAKE_S)
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)
            self._accept(listening)  # else waiting connections would be reset
            listening.close()
        await self._ended(_LEAVE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._open():
            connection.shutdown()
        await self._ended(grace_s)
        for connection in self._open():
            connection.transport.abort()
        if self._state.tasks:  # calls whose clients are gone now
            await asyncio.wait(self._state.tasks, timeout=grace_s)

    def _open(self) -> list[Connection]:
        return [connection for connection in self._state.connections if isinstance(connection, Connection)]

    async def _ended(self, timeout_s: float) -> None:
        """Wait until no connection is open, or for `timeout_s`."""
        give_up_s = time.monotonic() + timeout_s
        while self.count and time.monotonic() < give_up_s:
            await asyncio.sleep(_POLL_S)

    def _listen(self, listening: socket.socket) -> None:
        if listening.fileno() != _CLOSED:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Accept waiting connections, but in a flood no more than the event loop has time for."""
        loop = asyncio.get_running_loop()
        try:
            for _ in range(_BACKLOG):
                self._take(*listening.accept())
        except BlockingIOError:
            return
        except OSError as error:
            loop.remove_reader(listening)
            if error.errno in (errno.EBADF, errno.EINVAL):
                _log.critical("no HTTP connections are accepted any more", reason=str(error))
                self.lost.set()
            else:
                loop.call_later(_ERROR_PAUSE_S, self._listen, listening)

    def _take(self, accepted: socket.socket, place: Any) -> None:
        """Open a connection, or close it at once if there are too many."""
        accepted.setblocking(False)
        host = host_of(place[0])
        if not self._has_room(host, place[0]):
            accepted.close()
            return
        self._hosts[host] += 1
        self._begin(self._connect(accepted, host))

    def _has_room(self, host: str, address: str) -> bool:
        if self.count >= self._settings.max_connections:
            return False
        if self._hosts[host] < self._settings.host_connections() or address in self._proxies:
            return True
        self._closed.inc()
        return False

    async def _connect(self, accepted: socket.socket, host: str) -> None:
        """Open a connection; with TLS, after its handshake."""
        secured = self._tls is not None

        connection = Connection(
            self._config,
            self._state,
            self._settings.max_connection_age_s,
            on_lost=lambda: self._leave(host),
            is_last=lambda: self._is_leaving,
        )
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._tls() if self._tls else None,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if secured else None,
                ssl_shutdown_timeout=_TLS_END_S if secured else None,
            )
        except (OSError, asyncio.CancelledError):
            if connection.has_begun:
                connection.transport.abort()
            else:
                accepted.close()
                self._leave(host)

    def _leave(self, host: str) -> None:
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    async def _look_after(self) -> None:
        """Periodically end connections that exceed a time limit, and update the date of answers."""
        while True:
            self._state.default_headers[:] = [(b"date", formatdate(usegmt=True).encode())]
            now_s = time.monotonic()
            for connection in self._open():
                connection.look(now_s)
            await asyncio.sleep(_LOOK_PERIOD_S)

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
