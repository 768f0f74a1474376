"""When calls may come, and how those that run are ended."""

import asyncio
import time

import pytest

from dragoman.errors import DeadlineExceededError, DragomanError, DrainingError, InternalError, LoadingError
from service.handlers.context import CallContext
from service.handlers.gate import Gate, too_late
from service.registry.catalog import Catalog
from service.security.access import Caller

PATIENCE_S = 60.0


def context_of(timeout_s: float | None = None) -> CallContext:
    began_s = time.monotonic()
    return CallContext(Caller("alice"), None if timeout_s is None else began_s + timeout_s, began_s=began_s)


async def run(gate: Gate, context: CallContext, work: asyncio.Event) -> None:
    """A handler that waits for its work to be done."""
    async with gate.limited(context):
        await work.wait()


def test_a_gate_takes_calls_once_it_is_open_and_until_it_is_closed() -> None:
    gate, first, second = Gate(), Catalog([]), Catalog([])
    with pytest.raises(LoadingError, match="the models are being loaded"):
        gate.catalog()
    gate.open(first)
    assert gate.catalog() is first
    gate.open(second)
    assert gate.catalog() is second
    gate.close()
    with pytest.raises(DrainingError, match="the server is shutting down"):
        gate.catalog()


def test_one_that_is_closed_while_it_loads_drains() -> None:
    gate = Gate()
    gate.close()
    with pytest.raises(DrainingError):
        gate.catalog()


async def test_it_is_idle_while_no_call_runs() -> None:
    gate = Gate()
    await asyncio.wait_for(gate.idle(), PATIENCE_S)
    with gate.counting():
        with gate.counting():
            assert gate.running == 2
        idle = asyncio.create_task(gate.idle())
        await asyncio.sleep(0)
        assert (gate.running, idle.done()) == (1, False)
    await asyncio.wait_for(idle, PATIENCE_S)


def test_calls_that_read_on_are_told_of_the_end_once_and_only_while_they_run() -> None:
    gate, told = Gate(), []
    with gate.closing(lambda: told.append("past")):
        pass
    with gate.closing(lambda: told.append("present")):
        gate.close()
    assert told == ["present"]


async def test_a_call_within_its_deadline_ends_by_itself() -> None:
    work = asyncio.Event()
    work.set()
    await run(Gate(), context_of(PATIENCE_S), work)
    await run(Gate(), context_of(), work)


async def test_the_deadline_ends_a_call_in_words() -> None:
    with pytest.raises(DeadlineExceededError, match=r"not complete within the 0\.020 s of the call"):
        await asyncio.wait_for(run(Gate(), context_of(0.02), asyncio.Event()), PATIENCE_S)


@pytest.mark.parametrize(("given_s", "words"), [(0.5, "within the 0.500 s"), (0.0, "had passed"), (-3.0, "had passed")])
def test_a_time_of_nothing_is_not_told_as_zero(given_s: float, words: str) -> None:
    assert words in too_late(given_s)


async def test_all_calls_that_run_are_ended_by_the_error_that_the_server_gives() -> None:
    gate, error = Gate(), DrainingError("told again to")
    calls = [asyncio.create_task(run(gate, context_of(timeout_s), asyncio.Event())) for timeout_s in (None, 600.0)]
    await asyncio.sleep(0)
    gate.abandon(error)
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*calls, return_exceptions=True) == [error, error]


@pytest.mark.parametrize("error", [InternalError("a fault"), DeadlineExceededError("of a segment")])
async def test_the_error_of_a_handler_is_its_own(error: DragomanError) -> None:
    with pytest.raises(type(error)) as raised:
        async with Gate().limited(context_of(PATIENCE_S)):
            raise error
    assert raised.value is error
