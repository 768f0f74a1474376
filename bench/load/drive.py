"""A load on a server: requests are sent as a loop says, and watched meanwhile."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from bench.load.generator import Generator
from bench.load.grpc_calls import CHANNELS, connected
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.samples import Samples

# Runs beside a load until it is cancelled.
Watch = Callable[[Generator], Coroutine[Any, Any, None]]


async def drive(generator: Generator, loop: OpenLoop | ClosedLoop, watches: Sequence[Watch] = ()) -> None:
    """Return when all requests have ended."""
    tasks = [asyncio.create_task(watch(generator)) for watch in watches]
    try:
        await loop.run(generator.send, generator.now_s)
    finally:
        for task in tasks:
            task.cancel()


def put(
    addresses: Sequence[str],
    requests: Sequence[bytes],
    loop: OpenLoop | ClosedLoop,
    *,
    warmup_s: float = 0.0,
    timeout_s: float = 30.0,
    connections: int = CHANNELS,
    watches: Sequence[Watch] = (),
) -> Samples:
    """Put a load on servers over gRPC, one request to each in turn, with nothing around it.

    Returns:
        What was seen, once all requests have ended.
    """

    async def run() -> Samples:
        samples = Samples(warmup_s)
        async with AsyncExitStack() as stack:
            servers = [await stack.enter_async_context(connected(address, connections)) for address in addresses]
            of_each = [server.asks(stream=False) for server in servers]
            asks = [ask for in_turn in zip(*of_each, strict=True) for ask in in_turn]
            await drive(Generator(asks, requests, timeout_s, samples), loop, watches)
        return samples

    return asyncio.run(run())
