"""Access to the server: everyone may call, in plain text, unless a plugin has keys or certificates."""

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from service import plugins
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics
from service.wire import Metadata


class Caller(NamedTuple):
    """The caller of a call.

    Attributes:
        name: the same for all calls of one client; never shown to another client.
        entry: the rules for its key; None where no caller needs a key.
    """

    name: str
    entry: object | None = None


class Callers(Protocol):
    """The callers that have access, each with a key; lives on the event loop."""

    def identify(self, metadata: Metadata) -> Caller:
        """Find the caller of a call.

        Args:
            metadata: metadata of the call, keys in lower case.

        Raises:
            UnauthenticatedError: there is no key, or an unknown one.
        """

    def visit(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a call against the limits of its key while it runs.

        Raises:
            RateLimitedError: the key has made too many calls of late.
            ConcurrencyLimitedError: too many calls of the key run.
        """


class Certificates(Protocol):
    """The newest certificates of the server, and for the check of callers' certificates where callers need them."""

    def for_grpc(self) -> Any:
        """Make grpc.ServerCredentials, which look for newer certificates before each handshake."""

    def for_http(self) -> ssl.SSLContext:
        """Give the context of a new connection in Python's own TLS."""


class Access(NamedTuple):
    """The rules of access.

    Attributes:
        callers: the callers with keys; None: everyone may call, and a host is one caller.
        certificates: None: connections are in plain text.
        asks_for_keys: whether each caller needs a key, or a certificate.
        watched: gives a context in which the files of keys and certificates are read again when they change.
    """

    callers: Callers | None = None
    certificates: Certificates | None = None
    asks_for_keys: bool = False
    watched: Callable[[], AbstractAsyncContextManager[None]] = nullcontext


def access_of(settings: Settings, metrics: Metrics) -> Access:
    """Make the rules of access from the settings.

    Raises:
        SettingsError: a certificate, a key or the file of API keys cannot be used; or there is no plugin for them.
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
