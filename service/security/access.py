"""Who may call, and over which connections: everyone in plain text, unless a plugin has keys or certificates."""

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from service import plugins
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics
from service.wire import Metadata


class Caller(NamedTuple):
    """One who calls.

    Attributes:
        name: the same for all calls of one client; never shown to another.
        entry: what holds for its key; None where nobody needs one.
    """

    name: str
    entry: object | None = None


class Callers(Protocol):
    """Those who may call, each with a key; lives on the event loop."""

    def identify(self, metadata: Metadata) -> Caller:
        """Tell who calls.

        Args:
            metadata: what came with the call, keys in lower case.

        Raises:
            UnauthenticatedError: there is no key, or nobody's.
        """

    def visit(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a call against the limits of its key while it runs.

        Raises:
            RateLimitedError: the key has made too many calls of late.
            ConcurrencyLimitedError: too many calls of the key run.
        """


class Certificates(Protocol):
    """The certificates of the server, and those of its callers where they need some: the newest ones."""

    def for_grpc(self) -> Any:
        """Make grpc.ServerCredentials, which look for newer certificates before each handshake."""

    def for_http(self) -> ssl.SSLContext:
        """Give the context of a new connection in Python's own TLS."""


class Access(NamedTuple):
    """Who may call, and over which connections.

    Attributes:
        callers: None: everyone may, and a host is one caller.
        certificates: None: connections come in plain text.
        asks_for_keys: whether each caller needs a key, or a certificate.
        watched: gives a context in which the files of all that are read anew when they change.
    """

    callers: Callers | None = None
    certificates: Certificates | None = None
    asks_for_keys: bool = False
    watched: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


def access_of(settings: Settings, metrics: Metrics) -> Access:
    """Say who may call.

    Raises:
        SettingsError: a certificate, a key or the file of API keys cannot be used; or no plugin can use any.
    """
    if not (settings.api_keys or settings.tls_certificate):
        return Access()
    make: Callable[[Settings, Metrics], Access] | None = plugins.first(plugins.ACCESS)
    if make is None:
        raise SettingsError(
            "DRAGOMAN_API_KEYS (--api-keys), DRAGOMAN_TLS_CERTIFICATE (--tls-certificate): need a plugin that lets "
            f"nobody else in, an entry point of {plugins.ACCESS}"
        )
    return make(settings, metrics)
