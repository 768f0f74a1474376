"""Ends gRPC's connections before their server stops.

gRPC answers CANCELLED to a call that arrives while a server stops (grpc/grpc#41785), as if the caller had cancelled it.
If the connection ends first, the call gets UNAVAILABLE, after which every client may retry.
"""

import asyncio
import socket
import time
from contextlib import suppress
from typing import Final

from plugins.sockets import own_sockets

_CALL: Final = "_schedule_rpc_coro"  # the coroutine of grpcio that runs until the answer is sent
_LOOK_PERIOD_S: Final = 0.01
_END_S: Final = 1.0  # gRPC's threads notice within milliseconds


async def end_connections(port: int, grace_s: float) -> None:
    """End all connections to a port of this process, also those that begin meanwhile; without effect outside Linux.

    Args:
        grace_s: how long sending the answers of the current calls may take.
    """
    calls = {task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == _CALL}
    if calls:
        await asyncio.wait(calls, timeout=grace_s)
    with suppress(OSError):  # no descriptor is free to list the sockets
        if own_sockets.DESCRIPTORS.is_dir():
            await _end(port)


async def _end(port: int) -> None:
    own_sockets.refuse_connections(port)
    give_up_s = time.monotonic() + _END_S
    while time.monotonic() < give_up_s:
        connections = own_sockets.connections(port)
        if not connections:
            break
        for inode, descriptor in connections.items():
            own_sockets.end(descriptor, inode, socket.SHUT_RD)
        await asyncio.sleep(_LOOK_PERIOD_S)
