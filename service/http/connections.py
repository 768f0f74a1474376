"""Connections to the HTTP port: accepted, bounded in number, looked after, ended."""

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
from service.http.connection import Connection
from service.security.exposure import cannot_listen, places
from service.security.forwarded import TrustedProxies
from service.security.hosts import host_of
from service.settings import Settings
from service.telemetry.metrics import Metrics

HANDSHAKE_TIMEOUT_S: Final = 10.0
# A connection without calls costs a file descriptor; proxies keep theirs for a minute or so.
IDLE_TIMEOUT_S: Final = 120.0
_BACKLOG: Final = 1024
_LOOK_PERIOD_S: Final = 1.0
_NO_DESCRIPTOR_PAUSE_S: Final = 0.1
_POLL_S: Final = 0.01
_TLS_END_S: Final = 5.0  # to answer that the connection ends

_log = structlog.get_logger()


class Connections:
    """All connections to one port; needs a running event loop.

    Args:
        app: what answers, by ASGI.
        settings: of the server.
        tls: gives the context of a new connection; None: they come in plain text.
        proxies: which may have as many as there may be.
        metrics: of the server.

    Attributes:
        lost: set once no connection is accepted any more, though nobody ended that.
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

    def open(self, address: Address) -> Address:
        """Listen; gives the address with the port that was chosen, where it is 0.

        Raises:
            OSError: that is not possible.
        """
        self._sockets = _bound(address)
        for listening in self._sockets:
            accepting = self._begin(self._accept(listening))
            accepting.add_done_callback(lambda task: None if task.cancelled() else self.lost.set())
        self._begin(self._look_after())
        return address._replace(port=self._sockets[0].getsockname()[1])

    async def close(self, grace_s: float) -> None:
        """Accept no more connections; end those without a call now, and those that answer after a while."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        give_up_s = time.monotonic() + grace_s
        while self._state.connections and time.monotonic() < give_up_s:
            await asyncio.sleep(_POLL_S)
        for connection in list(self._state.connections):
            connection.transport.abort()
        if self._state.tasks:  # whose clients have left by that, if they had not before
            await asyncio.wait(self._state.tasks, timeout=grace_s)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, place = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    await asyncio.sleep(_NO_DESCRIPTOR_PAUSE_S)
                continue
            host = host_of(place[0])
            if not self._has_room(host, place[0]):
                accepted.close()
                continue
            self._hosts[host] += 1
            self._begin(self._connect(accepted, host))

    def _has_room(self, host: str, address: str) -> bool:
        if self._hosts.total() >= self._settings.max_connections:
            return False
        if self._hosts[host] < self._settings.host_connections() or address in self._proxies:
            return True
        self._closed.inc()
        return False

    async def _connect(self, accepted: socket.socket, host: str) -> None:
        """Begin a connection, over TLS once its handshake is done."""
        secured = self._tls is not None

        def make() -> Connection:
            return Connection(self._config, self._state, self._settings.max_connection_age_s, lambda: self._leave(host))

        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make,
                accepted,
                ssl=self._tls() if self._tls else None,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if secured else None,
                ssl_shutdown_timeout=_TLS_END_S if secured else None,
            )
        except (OSError, asyncio.CancelledError):
            accepted.close()
            self._leave(host)

    def _leave(self, host: str) -> None:
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    async def _look_after(self) -> None:
        """End connections that hold something up, for ever; and keep the date of answers."""
        while True:
            self._state.default_headers[:] = [(b"date", formatdate(usegmt=True).encode())]
            now_s = time.monotonic()
            for connection in list(self._state.connections):
                assert isinstance(connection, Connection)
                connection.look(now_s)
            await asyncio.sleep(_LOOK_PERIOD_S)

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _bound(address: Address) -> list[socket.socket]:
    """Listen at each place that the host stands for and this machine has, all with one port.

    Raises:
        OSError: there is none, or one is taken.
    """
    bound: list[socket.socket] = []
    failure: OSError | None = None
    for family, kind, protocol, _, place in places(address):
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = bound[0].getsockname()[1] if bound else place[1]
            listening.bind((place[0], port, *place[2:]))
            listening.listen(_BACKLOG)
            listening.setblocking(False)
            bound.append(listening)
        except OSError as error:
            listening.close()
            failure = error
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    else:
        if bound:
            return bound
    for listening in bound:
        listening.close()
    assert failure is not None
    raise cannot_listen(address, failure) from failure
