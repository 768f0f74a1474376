"""The guard of the connections to a gRPC port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from plugins.sockets.ending import end_connections
from plugins.sockets.host_connections import HostConnections
from service.settings import Settings
from service.telemetry.metrics import Metrics


@asynccontextmanager
async def guarded(port: int, settings: Settings, metrics: Metrics, grace_s: float) -> AsyncIterator[None]:
    """Watch the connections during the block, and then end them.

    Args:
        grace_s: how long sending the last answers may take.
    """
    watching = asyncio.create_task(HostConnections(port, settings.host_connections(), metrics).watch())
    try:
        yield
    finally:
        watching.cancel()
        await end_connections(port, grace_s)
