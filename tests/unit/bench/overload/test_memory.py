import asyncio
import os

import pytest

from bench.overload.memory import Resident, growth, watch
from bench.resident import resident_mib


def test_memory_that_stays_has_no_growth_whatever_came_first() -> None:
    filling = [Resident(float(at_s), 100.0 + 10 * min(at_s, 10)) for at_s in range(41)]
    assert growth(filling, 0.0, 40.0) == pytest.approx(0)


def test_growth_is_between_the_second_and_the_last_quarter() -> None:
    leaking = [Resident(float(at_s), 100.0 + at_s) for at_s in range(40)]
    assert growth(leaking, 0.0, 40.0) == pytest.approx(134.5 / 114.5 - 1)


def test_growth_that_was_not_seen_is_not_known() -> None:
    assert growth([Resident(1.0, 100.0)], 0.0, 40.0) is None


async def test_a_process_is_watched_until_that_is_cancelled() -> None:
    seen: list[Resident] = []
    task = asyncio.create_task(watch(os.getpid(), lambda: 7.0, seen))
    async with asyncio.timeout(60):
        while not seen:
            await asyncio.sleep(0)
    task.cancel()
    assert seen[0].at_s == 7.0
    assert seen[0].mib == pytest.approx(resident_mib(os.getpid()), rel=0.5)
