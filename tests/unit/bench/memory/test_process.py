import asyncio
import os

import numpy as np
import pytest

from bench.memory import Resident, peak_resident_mib, resident_mib, watch


def test_resident_size_sees_what_is_written() -> None:
    before_mib = resident_mib(os.getpid())
    written = np.ones(512 * 2**20, np.uint8)
    assert resident_mib(os.getpid()) - before_mib > 256  # what else is given back meanwhile is less
    assert written[0] == 1


async def test_a_process_is_watched_until_that_is_cancelled() -> None:
    seen: list[Resident] = []
    task = asyncio.create_task(watch(os.getpid(), lambda: 7.0, seen))
    async with asyncio.timeout(60):
        while not seen:
            await asyncio.sleep(0)
    task.cancel()
    assert seen[0].at_s == 7.0
    assert seen[0].mib == pytest.approx(resident_mib(os.getpid()), rel=0.5)


def test_memory_of_this_process_is_what_python_needs_and_no_more_than_its_peak() -> None:
    assert 10 < resident_mib(os.getpid()) <= peak_resident_mib(os.getpid()) < 10_000


def test_a_peak_stays_when_memory_is_given_back() -> None:
    written = np.ones(256 * 2**20, np.uint8)
    peak_mib = peak_resident_mib(os.getpid())
    del written
    assert peak_resident_mib(os.getpid()) >= peak_mib > resident_mib(os.getpid()) + 128
