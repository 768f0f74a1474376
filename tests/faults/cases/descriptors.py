"""More connections than the process may have file descriptors."""

import os
import socket
import time
from contextlib import ExitStack

from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.waiting import until

_FREE = 4
_CONNECTIONS = 40
_AT_THE_LIMIT_S = 2.0


class Descriptors(Fault):
    name = "descriptors"
    side = "server"
    promise = (
        "Without a file descriptor left, connections that exist go on; new ones wait, and are served once others "
        "are closed, the metrics page too."
    )

    def inject(self, arena: Arena) -> None:
        server = arena.server
        highest = max(map(int, os.listdir(f"/proc/{server.pid}/fd")))
        limit = highest + 1 + _FREE
        unlimited = server.limit_descriptors(limit)
        host, port = server.address.split(":")
        try:
            with ExitStack() as held:
                for _ in range(_CONNECTIONS):
                    held.enter_context(socket.create_connection((host, int(port)), timeout=5))
                until(lambda: server.descriptors() >= limit, "all descriptors are taken", 10)
                arena.see("descriptors taken, all there may be", server.descriptors(), limit)
                arena.see("new connections that nobody serves", server.health() is None)
                arena.load.more(50)
                arena.see("descriptors still taken", server.descriptors(), limit)
        finally:
            arena.over()  # the connections are closed; more descriptors than before are not needed for that
            time.sleep(_AT_THE_LIMIT_S)
            server.limit_descriptors(unlimited)
        until(lambda: _scrapes(server.scrape), "the metrics page is there", 10)


def _scrapes(scrape) -> bool:
    try:
        return bool(scrape())
    except OSError:
        return False
