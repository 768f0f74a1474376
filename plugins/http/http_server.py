"""The HTTP server: its port, from opening to closing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import structlog
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from dragoman.address import Address
from plugins.http import application, own
from plugins.http.browsers import BrowserGuard, is_loopback
from plugins.http.calls import Calls
from plugins.http.connections import Connections
from plugins.http.forwarded import TrustedProxies
from plugins.http.methods import Methods
from plugins.http.parts import ROUTES, HttpParts
from service import plugins
from service.port import PortParts
from service.security import addresses
from service.security.connection_limits import STOP_GRACE_S
from service.settings import Settings

_log = structlog.get_logger()


class HttpServer:
    """The port, if the settings have one; needs a running event loop.

    Attributes:
        lost: set if the port is no longer listening, although the settings have one.
    """

    def __init__(self, server: PortParts) -> None:
        settings, metrics, handlers, health, access = server
        certificates, asks_for_keys = access.certificates, access.asks_for_keys
        self._address = settings.http_address
        self._scheme = "http" if certificates is None else "https"
        self._warn = partial(addresses.warn, has_tls=certificates is not None, asks_for_keys=asks_for_keys)
        proxies = TrustedProxies(settings.http_trusted_proxies)
        calls = Calls(handlers, settings.max_request_bytes, proxies)
        methods = Methods(handlers, calls)
        parts = HttpParts(handlers, calls, methods)
        routes: list[BaseRoute] = own.routes(handlers, methods, lambda: health.serving)
        for make in plugins.load(ROUTES):
            routes += make(parts)
        self._has_page = any(isinstance(route, Route) and route.path == "/" for route in routes)
        self._connections = Connections(
            application.make(routes, settings.http_origins, [] if asks_for_keys else [_guard(settings, proxies)]),
            settings,
            None if certificates is None else certificates.for_http,
            proxies,
            metrics,
        )
        self.lost: asyncio.Event = self._connections.lost

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Accept calls during the block.

        Raises:
            OSError: listening on the address of the settings failed.
        """
        if not self._address:
            yield
            return
        address = self._connections.open(Address.parse(self._address))
        _log.info(f"http on {address}")
        if self._has_page:
            _log.info(f"page at {self._scheme}://{address}/")
        self._warn(address)
        try:
            yield
        finally:
            await self._connections.close(STOP_GRACE_S)


def _guard(settings: Settings, proxies: TrustedProxies) -> Middleware:
    """Make the guard against browser requests for a server without keys."""
    only_loopback = bool(settings.http_address) and is_loopback(Address.parse(settings.http_address).host)
    return Middleware(BrowserGuard, settings.http_origins, proxies, only_loopback=only_loopback)
