"""A load and nothing around it: requests and a loop, from connecting to the samples."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from bench.load.generator import CHANNELS, CONNECT_TIMEOUT_S, Generator, open_channels
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.samples import Samples


async def put(
    address: str, requests: Sequence[bytes], loop: OpenLoop | ClosedLoop, *, warmup_s: float, timeout_s: float
) -> Samples:
    """Put a load on a server.

    Args:
        address: of the server.
        requests: serialized, sent in turn.
        loop: when they are sent.
        warmup_s: before any request counts.
        timeout_s: of each request.

    Returns:
        What was seen, once all requests have ended.

    Raises:
        TimeoutError: no server answers.
    """
    samples = Samples(warmup_s)
    async with AsyncExitStack() as stack:
        channels = await open_channels(address, CHANNELS, stack)
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await asyncio.gather(*(channel.channel_ready() for channel in channels))
        generator = Generator(channels, requests, timeout_s, samples)
        await loop.run(generator.send, generator.now_s)
    return samples
