"""The life of an engine on the synthetic model: start, drain, stop, failure."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, InternalError
from service.decode import Decode, FinishReason
from service.engine.engine import Engine
from service.queue.mailbox import Mailbox
from service.runtime.slots import DecoderStep
from service.telemetry.metrics import Metrics
from tests.idle import wait_idle
from tests.synthetic import Synthetic

PATIENCE_S = 60
THREADS = 2
SLOTS = 2


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(10_000)


Make = Callable[..., Engine]


@pytest.fixture
def make(fp32: Synthetic, mailbox: Mailbox) -> Iterator[Make]:
    """Makes engines, and stops them at the end of the test."""
    engines: list[Engine] = []

    def make(bundle: Bundle = fp32.bundle, threads: int = THREADS, slots: int = SLOTS) -> Engine:
        engines.append(Engine(bundle, mailbox, Metrics(), device="cpu", threads=threads, slots=slots))
        return engines[-1]

    yield make
    for engine in engines:
        engine.stop()


class PlantedError(Exception):
    """What a test makes a step raise."""


class Gate:
    """Holds the first step of an engine until it is opened, then lets every step run, or raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self.error: Exception | None = None
        run = DecoderStep.run

        def gated(step: DecoderStep, *rows: int):
            self.reached.set()
            assert self.opened.wait(PATIENCE_S)
            if self.error is not None:
                raise self.error
            return run(step, *rows)

        monkeypatch.setattr(DecoderStep, "run", gated)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE_S)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, make: Make) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.opened.set()  # before `make` stops the engines, or they would never end


def test_slots_that_no_memory_holds_are_named(make: Make) -> None:
    with pytest.raises(BundleError, match="model synthetic: no memory for 1099511627776 slots on each of 2 threads"):
        make(slots=2**40)


def test_no_number_of_threads_means_one_a_core(make: Make) -> None:
    assert len(make(threads=0).batches) == len(os.sched_getaffinity(0))


def test_a_thread_that_stalls_is_left_behind(fp32: Synthetic, mailbox: Mailbox, gate: Gate) -> None:
    engine = Engine(fp32.bundle, mailbox, Metrics(), device="cpu", threads=1, slots=1, patience_s=0.01)
    assert engine.step_age_s() == 0
    engine.start()
    mailbox.submit([Decode([5, 2], 4)])
    gate.wait()
    assert engine.step_age_s() > 0
    with capture_logs() as log:
        engine.stop()
    assert [entry["thread"] for entry in log] == ["engine-0"]
    assert not engine.ended.done()
    gate.opened.set()
    assert engine.ended.result(PATIENCE_S) is None
    assert engine.step_age_s() == 0


def test_an_engine_without_work_stops(make: Make, mailbox: Mailbox) -> None:
    engine = make()
    engine.start()
    assert wait_idle(mailbox, PATIENCE_S)
    engine.stop()
    assert engine.ended.result(PATIENCE_S) is None
    with pytest.raises(InternalError, match="stopped"):
        mailbox.submit([Decode([2], 4)])


def test_an_engine_that_was_never_started_stops(make: Make) -> None:
    engine = make()
    engine.stop()
    assert not engine.ended.done()


def test_draining_waits_for_what_runs(make: Make, mailbox: Mailbox, gate: Gate) -> None:
    engine, segment = make(), Decode([5, 2], 4)
    engine.start()
    mailbox.submit([segment])
    gate.wait()
    mailbox.close()
    assert mailbox.unfinished
    with ThreadPoolExecutor(1) as pool:
        drained = pool.submit(wait_idle, mailbox, PATIENCE_S)
        gate.opened.set()
        assert drained.result(PATIENCE_S)
    assert segment.finished
    assert segment.error is None


def test_what_is_unfinished_at_a_stop_fails(make: Make, mailbox: Mailbox, gate: Gate) -> None:
    told: list[Decode] = []
    engine = make(threads=1, slots=1)
    running, waiting, withdrawn = (Decode([5, 2], 24, on_progress=told.append) for _ in range(3))
    engine.start()
    mailbox.submit([running, waiting, withdrawn])
    gate.wait()
    mailbox.cancel([withdrawn])
    mailbox.stop()
    gate.opened.set()
    engine.stop()
    assert engine.ended.result(PATIENCE_S) is None
    assert sorted(map(id, told)) == sorted(map(id, (running, waiting)))
    assert isinstance(running.error, InternalError)
    assert isinstance(waiting.error, InternalError)
    assert withdrawn.finish_reason is FinishReason.CANCELLED
    assert mailbox.unfinished == 0


async def test_failure_answers_every_waiter_and_ends_the_engine(make: Make, mailbox: Mailbox, gate: Gate) -> None:
    mailbox.bind(asyncio.get_running_loop())
    told: asyncio.Queue[Decode] = asyncio.Queue()
    engine = make()
    segments = [Decode([source, 2], 24, on_progress=told.put_nowait) for source in range(3, 23)]
    gate.error = PlantedError("in a step")
    engine.start()
    mailbox.submit(segments)
    gate.opened.set()
    async with asyncio.timeout(PATIENCE_S):
        answered = [await told.get() for _ in segments]
    assert sorted(map(id, answered)) == sorted(map(id, segments))
    assert {type(segment.error) for segment in segments} == {InternalError}
    assert "in a step" not in str(segments[0].error)  # what a runtime says may hold a caller's data
    with pytest.raises(InternalError):
        mailbox.submit([Decode([2], 4)])
    assert await asyncio.to_thread(wait_idle, mailbox, PATIENCE_S)
    await asyncio.to_thread(engine.stop)
    assert engine.ended.exception(PATIENCE_S) is gate.error
    assert [len(batch.runner.scheduler.active) for batch in engine.batches] == [0] * THREADS
    assert told.empty()


async def test_one_threads_failure_is_that_of_all(make: Make, mailbox: Mailbox, monkeypatch) -> None:
    """The other thread is in the middle of its segment; its caller is answered too."""
    both, lock = threading.Barrier(THREADS), threading.Lock()
    arrivals: list[DecoderStep] = []
    run = DecoderStep.run

    def fail_in_one(step: DecoderStep, *rows: int):
        with lock:
            first_time = step not in arrivals
            arrivals.append(step)
        if first_time:
            both.wait(PATIENCE_S)
        if step is arrivals[0]:
            raise PlantedError
        return run(step, *rows)

    monkeypatch.setattr(DecoderStep, "run", fail_in_one)
    mailbox.bind(asyncio.get_running_loop())
    told: asyncio.Queue[Decode] = asyncio.Queue()
    engine = make(slots=1)
    engine.start()
    segments = [Decode([5, 2], 24, on_progress=told.put_nowait) for _ in range(THREADS)]
    mailbox.submit(segments)
    async with asyncio.timeout(PATIENCE_S):
        answered = [await told.get() for _ in segments]
        with pytest.raises(PlantedError):
            await asyncio.wrap_future(engine.ended)
    assert set(answered) == set(segments)
    assert [type(segment.error) for segment in segments].count(InternalError) >= 1
    assert mailbox.unfinished == 0


async def test_a_waiter_that_gives_up_does_not_cancel_the_end(make: Make) -> None:
    engine = make()
    engine.start()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.wrap_future(engine.ended), 0)
    await asyncio.to_thread(engine.stop)
    assert engine.ended.result(PATIENCE_S) is None


@pytest.mark.parametrize("fails", [False, True], ids=["sound", "failing"])
def test_an_engine_outlives_its_event_loop(make: Make, mailbox: Mailbox, gate: Gate, fails: bool) -> None:
    loop = asyncio.new_event_loop()
    mailbox.bind(loop)
    engine, segments = make(threads=1), [Decode([5, 2], 4) for _ in range(5)]
    engine.start()
    mailbox.submit(segments)
    gate.wait()
    loop.close()
    gate.error = PlantedError() if fails else None
    gate.opened.set()
    assert wait_idle(mailbox, PATIENCE_S)
    assert all(segment.finished for segment in segments)
    engine.stop()
    assert engine.ended.exception(PATIENCE_S) is gate.error
