"""A gRPC server in the process of a test, which is stopped whatever becomes of the test."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio


@asynccontextmanager
async def grpc_server(add_services: Callable[[Any], None]) -> AsyncIterator[str]:
    """Serves on a free port; gives the address."""
    server = grpc.aio.server()
    add_services(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
