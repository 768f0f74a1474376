import asyncio
import threading

import pytest

from service.aio import converted, first_of


async def test_one_event_is_enough_and_without_any_it_is_the_time() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    await first_of(first, second, timeout_s=0.01)
    assert not first.is_set()
    second.set()
    await first_of(first, second)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(("size", "is_here"), [(65_536, True), (65_537, False)])
async def test_only_what_is_large_is_converted_on_another_thread(size: int, is_here: bool) -> None:
    thread = await converted(size, threading.current_thread)
    assert (thread is threading.current_thread()) == is_here


async def test_who_stops_waiting_leaves_no_wait_behind() -> None:
    waiting = asyncio.create_task(first_of(asyncio.Event(), asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
