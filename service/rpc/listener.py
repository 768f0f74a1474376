"""The gRPC port: its socket, the limits of connections, and the plugins that guard it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import grpc.aio
import structlog

from dragoman.address import Address
from service import plugins
from service.security import addresses
from service.security.access import Access
from service.security.addresses import bound
from service.security.connection_limits import HANDSHAKE_TIMEOUT_S, MAX_HEAD_BYTES, STOP_GRACE_S
from service.settings import Settings
from service.telemetry.metrics import Metrics

# A connection without calls costs a file descriptor. Clients reconnect by themselves, without an error.
IDLE_TIMEOUT_S: Final = 300.0
# A peer that has silently gone holds slots and streams for its calls until a ping is not answered.
PING_PERIOD_S: Final = 60.0
PING_TIMEOUT_S: Final = 20.0
# Clients behind address translation ping every 30 s or so; gRPC's own limit of 300 s would disconnect these clients.
MIN_PING_PERIOD_S: Final = 20.0
# Most calls of one connection; the client keeps further calls waiting. A shared channel of a busy client has far fewer.
MAX_CONNECTION_CALLS: Final = 1_024
_INT_MAX: Final = 2**31 - 1

_log = structlog.get_logger()


class Listener:
    """The gRPC server of some settings; needs a running event loop."""

    def __init__(
        self, settings: Settings, metrics: Metrics, access: Access, add_services: Callable[[Any], None]
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._access = access
        self._add_services = add_services

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Take calls.

        Raises:
            OSError: cannot listen on the address of the settings.
        """
        address = Address.parse(self._settings.address)
        async with AsyncExitStack() as open_:
            server, port = self._make_server(address)
            open_.push_async_callback(server.stop, STOP_GRACE_S)  # first, in case the start fails
            await server.start()
            _log.info(f"listening on {address._replace(port=port)}")
            for guarded in plugins.load(plugins.GUARDS):
                await open_.enter_async_context(guarded(port, self._settings, self._metrics, STOP_GRACE_S))
            _, certificates, asks_for_keys, watched = self._access
            addresses.warn(address, has_tls=certificates is not None, asks_for_keys=asks_for_keys)
            await open_.enter_async_context(watched())
            yield

    def _make_server(self, address: Address) -> tuple[Any, int]:
        """Make a server on an address, not started yet; gives its port, too."""
        if self._settings.processes == 1:
            # gRPC would write a failure to standard error, without the reason.
            for free in bound(address, "--address"):
                free.close()
        server = grpc.aio.server(options=_options(self._settings))
        self._add_services(server)
        if self._access.certificates is None:
            return server, int(server.add_insecure_port(str(address)))
        return server, int(server.add_secure_port(str(address), self._access.certificates.for_grpc()))


def _options(settings: Settings) -> list[tuple[str, int]]:
    return [
        # Else a second server on the port would start without an error and get half of the calls. With several
        # processes, the supervisor has checked that the port is free.
        ("grpc.so_reuseport", int(settings.processes > 1)),
        # A message that gRPC refuses gets no reason of this server: so gRPC refuses only far too large messages.
        ("grpc.max_receive_message_length", min(2 * settings.max_request_bytes, _INT_MAX)),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.max_concurrent_streams", MAX_CONNECTION_CALLS),
        ("grpc.max_metadata_size", MAX_HEAD_BYTES),
        ("grpc.absolute_max_metadata_size", MAX_HEAD_BYTES),
        ("grpc.server_handshake_timeout_ms", _ms(HANDSHAKE_TIMEOUT_S)),
        ("grpc.max_connection_idle_ms", _ms(IDLE_TIMEOUT_S)),
        # gRPC varies it by up to 10 % either way, so that not all clients come at once. Running calls have no limit.
        ("grpc.max_connection_age_ms", _ms(settings.max_connection_age_s) or _INT_MAX),
        ("grpc.keepalive_time_ms", _ms(PING_PERIOD_S)),
        ("grpc.keepalive_timeout_ms", _ms(PING_TIMEOUT_S)),
        # Without this option a ping may stay unanswered for 60 s whatever the option before says (seen in grpcio 1.85).
        ("grpc.http2.ping_timeout_ms", _ms(PING_TIMEOUT_S)),
        ("grpc.http2.min_ping_interval_without_data_ms", _ms(MIN_PING_PERIOD_S)),
    ]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
