"""A gRPC server in the process of a test, which is stopped whatever becomes of the test.

A `grpc.aio.server` whose event loop ends before `stop` writes to memory that was freed: docs/upstream.md.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from service.rpc.accept_loop import make_server


@asynccontextmanager
async def grpc_server(add_services: Callable[[Any], None]) -> AsyncIterator[str]:
    """Serves on a free port; gives the address."""
    server = make_server(())
    add_services(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
