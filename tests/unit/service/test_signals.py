"""Real signals to this process."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from service.signals import Signals

PATIENCE_S = 60.0


@pytest.fixture
async def signals() -> AsyncIterator[Signals]:
    yield Signals()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


async def come(number: signal.Signals, event: asyncio.Event) -> None:
    os.kill(os.getpid(), number)
    await asyncio.wait_for(event.wait(), PATIENCE_S)


async def test_sighup_asks_for_a_reload_and_nothing_else(signals: Signals) -> None:
    await come(signal.SIGHUP, signals.reload)
    signals.reload.clear()
    await come(signal.SIGHUP, signals.reload)
    assert not signals.stop.is_set()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_asks_to_stop_and_the_second_not_to_wait(signals: Signals, first, second) -> None:
    await come(first, signals.stop)
    assert not signals.force.is_set()
    await come(second, signals.force)
    assert not signals.reload.is_set()


async def test_ctrl_c_interrupts_after_the_second_signal(signals: Signals) -> None:
    await come(signal.SIGINT, signals.stop)
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    await come(signal.SIGINT, signals.force)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def test_the_end_of_a_pipe_asks_to_stop_as_well(signals: Signals) -> None:
    reading, writing = os.pipe()
    signals.stop_with(reading)
    await asyncio.sleep(0)
    assert not signals.stop.is_set()
    os.close(writing)
    await asyncio.wait_for(signals.stop.wait(), PATIENCE_S)
    os.close(reading)
    assert not signals.force.is_set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_none_breaks_the_end_of_the_process(signals: Signals, number: signal.Signals) -> None:
    signals.close()
    os.kill(os.getpid(), number)
    await asyncio.sleep(0)
    assert not signals.stop.is_set()
    assert not signals.reload.is_set()
