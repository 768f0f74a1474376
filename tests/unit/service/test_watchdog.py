import asyncio
import contextlib

import pytest
from structlog.testing import capture_logs

from service.metrics import Metrics
from service.watchdog import Watchdog

TIMEOUT_S = 10.0
PATIENCE_S = 60


class Steps:
    """How old the current step is, and what was told of it."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self.age_s = 0.0
        self.told: list[bool] = []
        self.heard = asyncio.Event()
        self.metrics = Metrics()
        self.watchdog = Watchdog(lambda: self.age_s, timeout_s, self._note, self.metrics)

    async def _note(self, stalled: bool) -> None:
        self.told.append(stalled)
        self.heard.set()

    def stalls(self) -> float | None:
        return self.metrics.registry.get_sample_value("dragoman_stalled_steps_total")


@pytest.mark.parametrize("age_s", [0.0, 0.1, TIMEOUT_S])
async def test_steps_that_end_in_time_are_no_news(age_s: float) -> None:
    steps = Steps()
    steps.age_s = age_s
    await steps.watchdog.look()
    assert (steps.told, steps.stalls()) == ([], 0)


async def test_a_stall_and_its_end_are_told_once() -> None:
    steps = Steps()
    with capture_logs() as log:
        for age_s in (1.0, TIMEOUT_S + 1, TIMEOUT_S + 2, 0.0, 1.0, TIMEOUT_S + 1, 0.0):
            steps.age_s = age_s
            await steps.watchdog.look()
    assert steps.told == [True, False, True, False]
    assert steps.stalls() == 2
    assert [entry["event"] for entry in log] == ["a step has stalled", "steps go on"] * 2


async def test_watching_is_looking_again_and_again() -> None:
    steps = Steps(timeout_s=0.001)
    watching = asyncio.create_task(steps.watchdog.watch())
    for age_s in (1.0, 0.0, 1.0):
        steps.heard.clear()
        steps.age_s = age_s
        await asyncio.wait_for(steps.heard.wait(), PATIENCE_S)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    assert steps.told == [True, False, True]
