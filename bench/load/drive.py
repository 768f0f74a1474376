"""A load on a server: requests are sent as a loop says, and watched meanwhile."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from bench.load.generator import Generator
from bench.load.grpc_calls import connected
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
    address: str,
    requests: Sequence[bytes],
    loop: OpenLoop | ClosedLoop,
    *,
    timeout_s: float,
    warmup_s: float = 0.0,
    watches: Sequence[Watch] = (),
) -> Samples:
    """Put a load on a server over gRPC, with nothing around it; returns what was seen, once all requests have ended."""

    async def run() -> Samples:
        samples = Samples(warmup_s)
        async with connected(address) as calls:
            await drive(Generator(calls.asks(stream=False), requests, timeout_s, samples), loop, watches)
        return samples

    return asyncio.run(run())
