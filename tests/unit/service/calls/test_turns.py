"""Turns of clients, step by step of the event loop."""

import asyncio

import pytest

from service.calls.turns import Turns


async def work(turns: Turns, client: str, done: list[str], slices: int) -> None:
    for _ in range(slices):
        async with turns.turn(client):
            done.append(client)


async def test_clients_take_turns_however_much_each_has_to_do() -> None:
    turns, done = Turns(), list[str]()
    flood = [asyncio.create_task(work(turns, "a", done, 100)) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.gather(work(turns, "b", done, 10), work(turns, "c", done, 10))
    assert len(done) <= 1 + 10 * 3 + 3
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_one_client_has_its_turns_in_order_of_arrival() -> None:
    turns, done = Turns(), list[int]()

    async def once(number: int) -> None:
        async with turns.turn("a"):
            done.append(number)

    await asyncio.gather(*map(once, range(50)))
    assert done == list(range(50))


async def test_between_two_slices_the_loop_does_all_that_is_due() -> None:
    turns, done = Turns(), list[str]()
    heavy = asyncio.create_task(work(turns, "a", done, 100))
    for steps in range(1, 10):
        await asyncio.sleep(0)
        assert len(done) <= steps
    await heavy


async def test_whoever_is_cancelled_leaves_no_turn_behind() -> None:
    turns, done = Turns(), list[str]()
    holder = asyncio.create_task(work(turns, "a", done, 1))
    waiting = [asyncio.create_task(work(turns, client, done, 1)) for client in "bcd"]
    await asyncio.sleep(0)
    holder.cancel()
    waiting[1].cancel()
    await asyncio.sleep(0)
    waiting[0].cancel()  # which has just been given its turn, perhaps
    await asyncio.gather(holder, *waiting, return_exceptions=True)
    await work(turns, "e", done, 1)
    assert done[-2:] == ["d", "e"]


async def test_a_slice_that_fails_passes_the_turn_on() -> None:
    turns, done = Turns(), list[str]()
    with pytest.raises(ValueError, match="slice"):
        async with turns.turn("a"):
            raise ValueError("slice")
    await work(turns, "b", done, 1)
    assert done == ["b"]
