"""Connections by host: where one host holds more than its share, the newest are closed. Linux only.

gRPC's Python has no way to refuse a connection, so the sockets are found among the descriptors of this process.
"""

import asyncio
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import structlog

from service.security.hosts import host_of
from service.telemetry.metrics import Metrics

_DESCRIPTORS: Final = Path("/proc/self/fd")
_LOOK_PERIOD_S: Final = 0.25
_LINE_PERIOD_S: Final = 10.0  # between two lines of the log
_REASON: Final = "HOST_LIMIT"

_log = structlog.get_logger()


class HostConnections:
    """The connections of this process to one port of its own.

    Args:
        port: that is listened on.
        limit: how many one host may have; of IPv6, one network of 64 bits is one host.
        metrics: of the server.
    """

    def __init__(self, port: int, limit: int, metrics: Metrics) -> None:
        self._port = port
        self._limit = limit
        self._closed = metrics.closed_connections_total.labels(_REASON)
        self._hosts: dict[int, str] = {}  # by inode, oldest first; "" for a socket that does not count
        self._next_line_s = 0.0

    async def watch(self) -> None:
        """Close what is too much, for ever."""
        while _DESCRIPTORS.is_dir():
            with suppress(OSError):  # no descriptor is free for the look
                self.look()
            await asyncio.sleep(_LOOK_PERIOD_S)

    def look(self) -> None:
        """Close what is too much now."""
        names = os.listdir(_DESCRIPTORS)
        if len(names) <= self._limit:  # no host can have more
            return
        descriptors = dict(_sockets(sorted(map(int, names))))
        self._hosts = {inode: host for inode, host in self._hosts.items() if inode in descriptors}
        for inode, descriptor in descriptors.items():
            if inode not in self._hosts:
                self._hosts[inode] = self._host(descriptor)
        counts: Counter[str] = Counter()
        for inode, host in self._hosts.items():
            counts[host] += 1
            if host and counts[host] > self._limit and _shut(descriptors[inode], inode):
                self._hosts[inode] = ""
                self._closed.inc()
        self._say(counts)

    def _host(self, descriptor: int) -> str:
        """Say where a connection to the port comes from; "" for any other socket."""
        with suppress(OSError, ValueError), closing(socket.socket(fileno=os.dup(descriptor))) as copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6) and copy.getsockname()[1] == self._port:
                return host_of(copy.getpeername()[0])
        return ""

    def _say(self, counts: Counter[str]) -> None:
        most = {host: count for host, count in counts.items() if host and count > self._limit}
        if most and time.monotonic() >= self._next_line_s:
            self._next_line_s = time.monotonic() + _LINE_PERIOD_S
            _log.warning("closed connections of hosts that had too many", hosts=most, max_host_connections=self._limit)


def _sockets(descriptors: list[int]) -> Iterator[tuple[int, int]]:
    """Yield inode and descriptor of each that is a socket."""
    for descriptor in descriptors:
        with suppress(OSError):  # closed meanwhile
            status = os.fstat(descriptor)
            if stat.S_ISSOCK(status.st_mode):
                yield status.st_ino, descriptor


def _shut(descriptor: int, inode: int) -> bool:
    """End a connection, which gRPC then cleans up; False where the descriptor is another's by now."""
    with suppress(OSError), closing(socket.socket(fileno=os.dup(descriptor))) as copy:
        if os.fstat(copy.fileno()).st_ino == inode:
            copy.shutdown(socket.SHUT_RDWR)
            return True
    return False
