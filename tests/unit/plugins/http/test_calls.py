import asyncio

import pytest

from plugins.http.body import ClientLeftError
from plugins.http.calls import while_client_stays


class Client:
    """Says that it leaves once it is told to."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.left.wait()
        return {"type": "http.disconnect"}


async def test_a_block_ends_where_the_client_leaves() -> None:
    client = Client()
    asyncio.get_running_loop().call_soon(client.left.set)
    with pytest.raises(ClientLeftError):
        async with while_client_stays(client.receive):
            await asyncio.Event().wait()
    await asyncio.sleep(0)  # the task goes on as if it had never been cancelled
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancellation_from_elsewhere_is_passed_on() -> None:
    async def wait() -> None:
        async with while_client_stays(Client().receive):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_client_that_leaves_after_the_block_changes_nothing() -> None:
    client = Client()
    async with while_client_stays(client.receive):
        client.left.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
