import asyncio

from service.aio import first_of


async def test_one_event_is_enough_and_without_any_it_is_the_time() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    await first_of(first, second, timeout_s=0.01)
    assert not first.is_set()
    second.set()
    await first_of(first, second)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_who_stops_waiting_leaves_no_wait_behind() -> None:
    waiting = asyncio.create_task(first_of(asyncio.Event(), asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
