"""Connections by host: where one host holds more than its share, the newest are closed. Linux only.

gRPC's Python has no way to refuse a connection, so the sockets are found among the descriptors of this process.
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
_LINE_PERIOD_S: Final = 10.0  # between two lines of the log
_REASON: Final = "HOST_LIMIT"

_log = structlog.get_logger()


class HostConnections:
    """The connections of this process to one port of its own.

    Args:
        limit: how many one host may have; of IPv6, one network of 64 bits is one host.
    """

    def __init__(self, port: int, limit: int, metrics: Metrics) -> None:
        self._port = port
        self._limit = limit
        self._closed = metrics.closed_connections_total.labels(_REASON)
        self._hosts: dict[int, str] = {}  # by inode, oldest first; "" for a socket that does not count
        self._next_line_s = 0.0

    async def watch(self) -> None:
        """Close what is too much, for ever."""
        while own_sockets.DESCRIPTORS.is_dir():
            with suppress(OSError):  # no descriptor is free for the look
                self.look()
            await asyncio.sleep(_LOOK_PERIOD_S)

    def look(self) -> None:
        """Close what is too much now."""
        names = os.listdir(own_sockets.DESCRIPTORS)
        if len(names) <= self._limit:  # no host can have more
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
