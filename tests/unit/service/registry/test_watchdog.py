import asyncio
import contextlib

import pytest
from structlog.testing import capture_logs

from service.registry.watchdog import Watchdog
from service.telemetry.metrics import Metrics

TIMEOUT_S = 10.0
PATIENCE_S = 60


class Steps:
    """How old the current step of each model is, and what was told of it."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self.ages_s = {"en-de": 0.0, "de-en": 0.0}
        self.told: list[frozenset[str]] = []
        self.heard = asyncio.Event()
        self.metrics = Metrics()
        self.watchdog = Watchdog(lambda: self.ages_s, timeout_s, self._note, self.metrics)

    def _note(self, stalled: frozenset[str]) -> None:
        self.told.append(stalled)
        self.heard.set()

    def stalls(self) -> float | None:
        return self.metrics.total("stalled_steps_total")


@pytest.mark.parametrize("age_s", [0.0, 0.1, TIMEOUT_S])
def test_steps_that_end_in_time_are_no_news(age_s: float) -> None:
    steps = Steps()
    steps.ages_s["en-de"] = age_s
    steps.watchdog.look()
    assert (steps.told, steps.stalls()) == ([], 0)


def test_a_stall_and_its_end_are_told_once() -> None:
    steps = Steps()
    with capture_logs() as log:
        for age_s in (1.0, TIMEOUT_S + 1, TIMEOUT_S + 2, 0.0, 1.0, TIMEOUT_S + 1, 0.0):
            steps.ages_s["en-de"] = age_s
            steps.watchdog.look()
    assert steps.told == [{"en-de"}, set(), {"en-de"}, set()]
    assert steps.stalls() == 2
    assert [entry["event"] for entry in log] == ["a step has stalled", "steps go on"] * 2


def test_a_stall_is_of_the_model_that_has_it_until_it_goes_on_or_is_served_no_more() -> None:
    steps = Steps()
    for ages_s in ({"en-de": 11.0, "de-en": 0.0}, {"en-de": 12.0, "de-en": 11.0}, {"de-en": 12.0}, {"de-en": 0.0}):
        steps.ages_s = ages_s
        steps.watchdog.look()
    assert steps.told == [{"en-de"}, {"en-de", "de-en"}, {"de-en"}, set()]
    assert steps.stalls() == 2


@pytest.mark.parametrize("timeout_s", [0.1, 2.0, 60.0])
async def test_a_stall_is_noticed_soon_after_the_timeout(monkeypatch, timeout_s: float) -> None:
    steps = Steps(timeout_s)

    async def pass_the_time(seconds: float) -> None:
        assert seconds > 0
        if steps.told:
            raise asyncio.CancelledError
        steps.ages_s["en-de"] += seconds

    monkeypatch.setattr("service.registry.watchdog.asyncio.sleep", pass_the_time)
    with pytest.raises(asyncio.CancelledError):
        await steps.watchdog.watch()
    assert timeout_s < steps.ages_s["en-de"] <= timeout_s + min(timeout_s / 4, 1.0)


async def test_watching_is_looking_again_and_again() -> None:
    steps = Steps(timeout_s=0.001)
    watching = asyncio.create_task(steps.watchdog.watch())
    for age_s in (1.0, 0.0, 1.0):
        steps.heard.clear()
        steps.ages_s["en-de"] = age_s
        await asyncio.wait_for(steps.heard.wait(), PATIENCE_S)
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    assert steps.told == [{"en-de"}, set(), {"en-de"}]
