"""The end of gRPC's connections, before the server that has them stops.

A call that comes to a server of gRPC that stops gets CANCELLED (grpc/grpc#41785), as if its caller had wanted that. One
whose connection ends gets UNAVAILABLE, after which every client may try again.
"""

import asyncio
import socket
import time
from contextlib import suppress
from typing import Any, Final

from plugins.sockets import own_sockets

_CALL: Final = "_schedule_rpc_coro"  # of grpcio; goes on until the answer is sent
_LOOK_PERIOD_S: Final = 0.01
_END_S: Final = 1.0  # gRPC's threads notice within milliseconds


async def end_connections(port: int, grace_s: float) -> None:
    """End the connections to a port of ours; one that begins meanwhile, too. Does nothing where there is no Linux.

    Args:
        grace_s: which the answers of the calls of this moment may take until they are sent.
    """
    if calls := _calls():
        await asyncio.wait(calls, timeout=grace_s)
    with suppress(OSError):  # no descriptor is free for the look
        if own_sockets.DESCRIPTORS.is_dir():
            await _end(port)


def _calls() -> set[asyncio.Task[Any]]:
    """Find the tasks of calls whose answers are not sent yet, of all servers of this event loop."""
    return {task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == _CALL}


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
