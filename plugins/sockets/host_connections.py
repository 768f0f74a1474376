"""Connections per host: the newest connections of a host above its limit are closed. Linux only.

gRPC for Python cannot refuse a connection, so the sockets are found among the descriptors of this process.
"""

import asyncio
import os
import time
from collections import Counter
from contextlib import suppress
from typing import Final

import structlog

from plugins.sockets import own_sockets
from service.security.hosts import host_of
from service.telemetry.metrics import Metrics

_LOOK_PERIOD_S: Final = 0.25
_LINE_PERIOD_S: Final = 10.0  # between two log lines
_REASON: Final = "HOST_LIMIT"

_log = structlog.get_logger()


class HostConnections:
    """The connections of this process to one port of its own.

    Args:
        limit: connections per host; an IPv6 network of 64 bits counts as one host.
    """

    def __init__(self, port: int, limit: int, metrics: Metrics) -> None:
        self._port = port
        self._limit = limit
        self._closed = metrics.closed_connections_total.labels(_REASON)
        self._hosts: dict[int, str] = {}  # by inode, oldest first; "" for other sockets
        self._next_line_s = 0.0

    async def watch(self) -> None:
        """Close surplus connections, periodically."""
        while own_sockets.DESCRIPTORS.is_dir():
            with suppress(OSError):  # no descriptor is free to list the sockets
                self.look()
            await asyncio.sleep(_LOOK_PERIOD_S)

    def look(self) -> None:
        """Close the surplus connections of each host."""
        names = os.listdir(own_sockets.DESCRIPTORS)
        if len(names) <= self._limit:  # then no host can be above its limit
            return
        descriptors = own_sockets.by_inode(names)
        self._hosts = {inode: host for inode, host in self._hosts.items() if inode in descriptors}
        for inode, descriptor in descriptors.items():
            if inode not in self._hosts:
                peer = own_sockets.peer(descriptor, self._port)
                self._hosts[inode] = host_of(peer) if peer else ""
        counts: Counter[str] = Counter()
        for inode, host in self._hosts.items():
            counts[host] += 1
            if host and counts[host] > self._limit and own_sockets.end(descriptors[inode], inode):
                self._hosts[inode] = ""
                self._closed.inc()
        self._say(counts)

    def _say(self, counts: Counter[str]) -> None:
        most = {host: count for host, count in counts.items() if host and count > self._limit}
        if most and time.monotonic() >= self._next_line_s:
            self._next_line_s = time.monotonic() + _LINE_PERIOD_S
            _log.warning("closed connections of hosts that had too many", hosts=most, max_host_connections=self._limit)
