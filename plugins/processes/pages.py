"""The metrics of several servers: each server answers on a local socket, and one HTTP page shows the sums."""

import asyncio
import json
import os
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from http.server import ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final

from prometheus_client import CollectorRegistry, MetricsHandler
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dragoman.exit_codes import EXIT_OK
from plugins.processes.totals import Page, Totals, page_from_json, page_of
from service.security.connection_limits import HANDSHAKE_TIMEOUT_S

_PATIENCE_S: Final = 2.0  # for the answer of a process


@asynccontextmanager
async def answering(listening: socket.socket, registry: CollectorRegistry) -> AsyncIterator[None]:
    """Answer each connection to a socket with the metrics of this process, in JSON."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        page = await asyncio.to_thread(page_of, registry, os.getpid())
        with suppress(OSError):
            writer.write(json.dumps(page).encode())
            await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(answer, sock=listening):
        yield


def show_sum(
    listening: socket.socket, names: Sequence[bytes], supervisor: int, tell_serving: Callable[[], None]
) -> int:
    """Serve the page of sums until the supervisor ends; returns the exit code.

    Args:
        supervisor: a pipe that is closed when the supervisor ends.
        tell_serving: called once the page can be read.
    """
    registry = CollectorRegistry()
    registry.register(SumOfServers(names))
    handler: Any = MetricsHandler.factory(registry)
    handler.timeout = HANDSHAKE_TIMEOUT_S  # each connection takes a thread
    server = ThreadingHTTPServer(("", 0), handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    Thread(target=server.serve_forever, daemon=True).start()
    tell_serving()
    # The event loops of the servers have made the shared pipe non-blocking.
    select.select([supervisor], [], [])
    return EXIT_OK


class SumOfServers(Collector):
    """The metrics of several servers.

    Args:
        names: the names of their sockets; a restarted server uses the same socket.
    """

    def __init__(self, names: Sequence[bytes]) -> None:
        self._names = names
        self._totals = Totals()
        self._lock = Lock()  # the page may be read twice at the same time

    def collect(self) -> Iterable[Metric]:
        """Give the sums."""
        with self._lock:
            return self._totals.add(asyncio.run(_read_all(self._names)))


async def _read_all(names: Sequence[bytes]) -> dict[int, Page]:
    pages = await asyncio.gather(*map(_read, names))
    return {number: page for number, page in enumerate(pages) if page is not None}


async def _read(name: bytes) -> Page | None:
    """Read the metrics of a server; None if it does not answer."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_unix_connection(name)  # type: ignore[arg-type]  # the name of no file
            try:
                return page_from_json(json.loads(await reader.read()))
            finally:
                writer.close()
    except (OSError, ValueError):  # a TimeoutError is an OSError
        return None
