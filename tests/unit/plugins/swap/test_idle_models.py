"""Models that leave the memory because no call needs them; the tests play their engines."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plugins.swap.idle_models import IdleModels
from tests.unit.plugins.swap.test_model_memory import NAMES, SMALL, BoundedModels
from tests.unit.service.played_engine import until

KEEP_S = 0.02


class IdlingModels(BoundedModels):
    """Models that leave, and the task that has them leave."""

    async def begin(self) -> None:
        await self.start()
        self.idle = IdleModels(self.settings, self.registry)
        self.following = asyncio.create_task(self.idle.follow())

    async def end(self) -> None:
        self.idle.stop()
        await self.following


@pytest.fixture
async def models(tmp_path: Path, manifest, tokenizer, request) -> AsyncIterator[IdlingModels]:
    (tmp_path / "models").mkdir()
    own = {"keep_alive_s": KEEP_S, **SMALL, **getattr(request, "param", {})}
    models = IdlingModels(tmp_path / "models", manifest, tokenizer, **own)
    for name in NAMES:
        models.write(name, name)
    await models.begin()
    yield models
    await models.end()


def with_settings(**settings: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("models", [settings], indirect=True)


async def test_a_model_is_loaded_by_a_call_leaves_and_is_loaded_again(models: IdlingModels) -> None:
    assert (models.loads, models.registry.names) == ([], list(NAMES))
    for times in (1, 2):
        await models.use("a")
        await until(lambda: models.in_memory == [])
        assert models.loads == ["a 1"] * times
        assert models.serves("a")
    assert models.metrics.total("model_evictions_total") == 0
    assert models.metrics.total("model_memory_bytes") == 0


async def test_a_model_stays_as_long_as_a_call_needs_it(models: IdlingModels) -> None:
    held = await models.hold("a", "b")
    await models.use("c")
    await until(lambda: models.in_memory == ["a", "b"])
    held.close()
    await until(lambda: models.in_memory == [])
    assert sorted(models.loads) == ["a 1", "b 1", "c 1"]


@with_settings(pinned_models="b")
async def test_a_pinned_model_stays(models: IdlingModels) -> None:
    await models.use("a")
    await until(lambda: models.in_memory == ["b"])
    assert models.loads == ["b 1", "a 1"]


@with_settings(model_memory_mb=20)
async def test_with_a_budget_models_leave_for_others_and_when_they_are_idle(models: IdlingModels) -> None:
    for name in NAMES:
        await models.use(name)
    await until(lambda: models.in_memory == [])
    assert len(models.loads) == len(NAMES)


@with_settings(keep_alive_s=0)
async def test_without_a_limit_models_stay(models: IdlingModels) -> None:
    assert models.in_memory == list(NAMES)
    await models.following


@with_settings(keep_alive_s=3600)
async def test_the_end_of_the_server_is_waited_for_by_nobody(models: IdlingModels) -> None:
    await models.use("a")
    await models.end()
    assert models.in_memory == ["a"]


async def test_calls_at_any_moment_get_their_model(models: IdlingModels) -> None:
    """Calls come about as often as models leave."""
    for number in range(40):
        held = await models.hold("a" if number % 3 else "b")
        await asyncio.sleep(KEEP_S / 2)
        held.close()
        await asyncio.sleep(KEEP_S * (number % 4) / 3)
    await until(lambda: models.in_memory == [])
