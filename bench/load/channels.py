"""The connections of a load to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import grpc
import grpc.aio

from bench.load.calls import CONNECT_TIMEOUT_S, NoServerError

# One HTTP/2 connection is one thread's work in gRPC: a few keep the client from being what is measured.
CHANNELS: Final = 4

_OPTIONS: Final = [
    # Without its own pool every channel to one address would be the same connection.
    ("grpc.use_local_subchannel_pool", 1),
    # One request is one attempt: a retry that nobody sees would hide errors.
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", -1),
]


@asynccontextmanager
async def connected(
    address: str, count: int = CHANNELS, credentials: grpc.ChannelCredentials | None = None
) -> AsyncIterator[list[grpc.aio.Channel]]:
    """Open channels for the time of the block, each with its own connection.

    Yields:
        The channels, all of them connected.
    """
    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(_channel(address, credentials)) for _ in range(count)]
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.gather(*(channel.channel_ready() for channel in channels))
        except TimeoutError as error:
            raise NoServerError(f"no server answers at {address}") from error
        yield channels


def _channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=_OPTIONS)
    return grpc.aio.secure_channel(address, credentials, options=_OPTIONS)
