"""The queue of the calls that wait for models."""

import asyncio
from contextlib import ExitStack

import pytest

from dragoman.errors import QueueFullError
from plugins.swap.model_waits import ModelWaits, Waiter


async def test_a_call_above_the_limit_may_wait_alone() -> None:
    waits = ModelWaits(limit_bytes=2_000)
    waits.check(2_001)  # else it could never be served
    waiter = Waiter([], ExitStack(), 2_001)
    waiting = asyncio.create_task(waits.wait(waiter))
    await asyncio.sleep(0)
    with pytest.raises(QueueFullError, match="1 calls of 3001 bytes wait for models; the limit is 2000"):
        waits.check(0)
    waits.settle(waiter, True)
    assert await waiting
    waits.check(2_001)
