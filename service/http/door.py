"""The HTTP port of a server, from its opening to its end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import structlog
from starlette.middleware import Middleware

from dragoman.address import Address
from service.handlers.document_jobs import DocumentJobs
from service.handlers.translation import TranslationHandlers
from service.http import application, connect, own, page
from service.http.browsers import BrowserGuard
from service.http.calls import Calls
from service.http.connections import Connections
from service.http.deepl import DeepL
from service.http.deepl_documents import DeepLDocuments
from service.http.libretranslate import LibreTranslate
from service.http.libretranslate_files import LibreTranslateFiles
from service.http.methods import Methods
from service.http.parameter_calls import ParameterCalls
from service.registry.catalog import Catalog
from service.registry.health import Health
from service.security import exposure
from service.security.forwarded import TrustedProxies
from service.security.hosts import is_loopback
from service.security.tls import Certificates
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.wire import Protocol

_STOP_GRACE_S: Final = 5.0  # for answers on their way, after all calls have ended; a busy machine needs seconds

_log = structlog.get_logger()


class Door:
    """The port, if the settings want one; needs a running event loop.

    Args:
        settings: of the server.
        metrics: of the server.
        handlers: of the methods.
        health: of the server.
        catalog: gives the models that are served; raises a DragomanError where there are none.
        certificates: of the server; None: connections come in plain text.
        documents: that are translated.
        asks_for_keys: whether callers need a key, or a certificate.

    Attributes:
        lost: set once nobody listens though the settings want it.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        handlers: TranslationHandlers,
        health: Health,
        catalog: Callable[[], Catalog],
        certificates: Certificates | None,
        *,
        documents: DocumentJobs,
        asks_for_keys: bool,
    ) -> None:
        self._address = settings.http_address
        self._scheme = "http" if certificates is None else "https"
        self._warn = partial(exposure.warn, has_tls=certificates is not None, asks_for_keys=asks_for_keys)
        proxies = TrustedProxies(settings.http_trusted_proxy_list)
        calls = Calls(handlers, settings.max_request_bytes, proxies)
        answers = Methods(handlers, calls)
        of_libretranslate = ParameterCalls(calls, Protocol.LIBRETRANSLATE, "api_key")
        of_deepl = ParameterCalls(calls, Protocol.DEEPL, "auth_key")
        libretranslate = LibreTranslate(handlers, of_libretranslate, catalog, asks_for_keys=bool(settings.api_keys))
        routes = [
            *own.routes(handlers, answers, lambda: health.serving),
            *connect.routes(answers),
            *libretranslate.routes(),
            *LibreTranslateFiles(documents, of_libretranslate).routes(),
            *page.routes(settings.max_text_bytes, settings.max_request_bytes, settings.pivot_language),
            *DeepLDocuments(handlers, documents, of_deepl).routes(),
            *DeepL(handlers, of_deepl, catalog).routes(),
        ]
        self._connections = Connections(
            application.make(routes, settings.http_origin_list, [] if asks_for_keys else [_guard(settings, proxies)]),
            settings,
            None if certificates is None else lambda: certificates.value.for_http,
            proxies,
            metrics,
        )
        self.lost: asyncio.Event = self._connections.lost

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Take calls.

        Raises:
            OSError: cannot listen on the address of the settings.
        """
        if not self._address:
            yield
            return
        address = Address.parse(self._address)
        address = self._connections.open(address)
        _log.info(f"http on {address}")
        _log.info(f"page at {self._scheme}://{address}/")
        self._warn(address)
        try:
            yield
        finally:
            await self._connections.close(_STOP_GRACE_S)


def _guard(settings: Settings, proxies: TrustedProxies) -> Middleware:
    """Make what a server without keys refuses of browsers."""
    only_loopback = bool(settings.http_address) and is_loopback(Address.parse(settings.http_address).host)
    return Middleware(BrowserGuard, settings.http_origin_list, proxies, only_loopback=only_loopback)
