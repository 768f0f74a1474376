"""A port in addition to the gRPC port, which a plugin opens."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from service.handlers.translation import TranslationHandlers
from service.registry.health import Health
from service.security.access import Access
from service.settings import Settings
from service.telemetry.metrics import Metrics


class PortParts(NamedTuple):
    """The parts of a server that a port needs."""

    settings: Settings
    metrics: Metrics
    handlers: TranslationHandlers
    health: Health
    access: Access


class Port(Protocol):
    """A port; needs a running event loop.

    Attributes:
        lost: set once the port is lost, although the settings want it.
    """

    lost: asyncio.Event

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Take calls; raises OSError where that is not possible."""
