"""Models that are loaded when they are needed, and leave for others; the tests play their engines."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from dragoman.errors import (
    BundleError,
    DrainingError,
    InvalidRequestError,
    LoadingError,
    ModelUnavailableError,
    QueueFullError,
)
from plugins.swap import model_memory
from service.registry.catalog import ServedModel
from service.registry.model_cost import Cost
from service.settings import MEGABYTE, SettingsError
from tests.unit.service.played_engine import until
from tests.unit.service.registry.followed_models import PATIENCE_S, FollowedModels

BUDGET_MB = 20  # three models of some 6.2 MB
SMALL = {"threads": 1, "slots": 1, "encoder_cache_mb": 0, "result_cache_mb": 0}
NAMES = ("a", "b", "c", "d", "e")


class BoundedModels(FollowedModels):
    """Models of which three have room."""

    async def hold(self, *names: str, size_bytes: int = 0, client: str = "a client") -> ExitStack:
        """Holds models as a call does, and gives what lets them go."""
        held = ExitStack()
        models = self.named(*names)
        if all(model.takes_calls for model in models):
            for model in models:
                held.enter_context(model.held())
        elif not await self.memory.bring(models, held, size_bytes, client):
            raise AssertionError("replaced")
        assert all(model.pipeline is not None for model in models)
        return held

    async def use(self, *names: str) -> None:
        (await self.hold(*names)).close()

    def named(self, *names: str) -> list[ServedModel]:
        return [model for name in names for model in self.registry.served if model.name == name]

    @property
    def in_memory(self) -> list[str]:
        return sorted(model.name for model in self.registry.in_memory)


@pytest.fixture
async def bounded(tmp_path: Path, manifest, tokenizer, request) -> BoundedModels:
    (tmp_path / "models").mkdir()
    own = {"model_memory_mb": BUDGET_MB, **SMALL, **getattr(request, "param", {})}
    models = BoundedModels(tmp_path / "models", manifest, tokenizer, **own)
    for name in NAMES:
        models.write(name, name)
    return models


def pinning(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bounded", [{"pinned_models": ",".join(names)}], indirect=True)


async def test_a_model_is_loaded_once_when_calls_first_need_it(bounded: BoundedModels) -> None:
    await bounded.start()
    assert (bounded.loads, bounded.registry.names) == ([], list(NAMES))
    assert bounded.serves("a")
    for held in await asyncio.gather(*(bounded.hold("a") for _ in range(5))):
        held.close()
    await bounded.use("a")
    assert bounded.loads == ["a 1"]
    assert bounded.metrics.total("model_loads_total", model="a", outcome="loaded") == 1
    assert bounded.metrics.total("model_wait_duration_seconds_count") == 5


async def test_the_least_recently_used_model_leaves(bounded: BoundedModels) -> None:
    await bounded.start()
    [family] = bounded.metrics.model_evictions_total.collect()
    counts = {sample.labels["model"]: sample.value for sample in family.samples if sample.name.endswith("_total")}
    assert counts == dict.fromkeys(NAMES, 0)
    for name in ("a", "b", "c", "a", "d"):
        await bounded.use(name)
    assert bounded.in_memory == ["a", "c", "d"]
    assert bounded.metrics.total("model_evictions_total", model="b") == 1
    sizes = bounded.metrics.total("model_memory_bytes")
    assert sizes == sum(model.cost_bytes for model in bounded.registry.in_memory) <= BUDGET_MB * MEGABYTE
    assert bounded.metrics.total("model_memory_bytes", model="b") == 0
    assert bounded.serves("b")


@pinning("a", "b")
async def test_pinned_models_are_loaded_at_the_start_and_stay(bounded: BoundedModels) -> None:
    await bounded.start()
    assert bounded.loads == ["a 1", "b 1"]
    for name in ("c", "d", "e"):
        await bounded.use(name)
    assert bounded.in_memory == ["a", "b", "e"]


async def test_a_model_in_use_stays_and_others_wait_until_it_is_free(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("a", "b", "c")]
    waiting = asyncio.create_task(bounded.hold("d"))
    await until(lambda: any(model.leaving for model in bounded.registry.served))
    assert bounded.metrics.total("model_waiting_calls") == 1
    late = asyncio.create_task(bounded.hold("c"))  # whose calls are the youngest: it takes no new ones
    await until(lambda: bounded.metrics.total("model_waiting_calls") == 2)
    assert bounded.in_memory == ["a", "b", "c"]
    helds[0].close()
    (await asyncio.wait_for(waiting, PATIENCE_S)).close()
    (await asyncio.wait_for(late, PATIENCE_S)).close()
    assert bounded.loads == ["a 1", "b 1", "c 1", "d 1"]


@pytest.mark.parametrize("bounded", [{"max_model_wait_s": 2}], indirect=True)
async def test_a_call_that_waits_too_long_is_told_when_to_try_again(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("a", "b", "c")]
    with pytest.raises(LoadingError, match=r"model d was not in memory within 2 s") as refused:
        await bounded.hold("d")
    assert refused.value.retry_delay_s
    await until(lambda: not any(model.leaving for model in bounded.registry.served))
    for held in helds:
        held.close()
    await bounded.use("d")


async def test_a_call_that_leaves_lets_in_who_waits_for_a_model_that_was_to_leave(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("a", "b", "c")]
    leaving = asyncio.create_task(bounded.hold("d", client="one"))
    await until(lambda: bounded.named("c")[0].leaving)
    others = [asyncio.create_task(bounded.hold(name, client=name)) for name in ("e", "c")]
    await until(lambda: bounded.metrics.total("model_waiting_calls") == 3)
    leaving.cancel()
    (await asyncio.wait_for(others[1], PATIENCE_S)).close()
    assert not others[0].done(), "nothing has left room for it"
    for held in helds:
        held.close()
    (await asyncio.wait_for(others[0], PATIENCE_S)).close()


async def test_calls_that_need_two_models_each_do_not_wait_for_each_other(bounded: BoundedModels) -> None:
    await bounded.start()
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("e", "a")] * 3
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(bounded.use(*pair) for pair in pairs))
    assert bounded.metrics.total("model_waiting_calls") == 0


@pytest.mark.parametrize("bounded", [{"model_memory_mb": 7}], indirect=True)  # of one model
async def test_clients_that_wait_for_models_take_turns(bounded: BoundedModels) -> None:
    await bounded.start()
    held = await bounded.hold("a")

    async def use(client: str, name: str) -> None:
        (await bounded.hold(name, client=client)).close()

    waiting = []
    for client, name in [("flood", "b"), ("flood", "c"), ("flood", "d"), ("another", "e")]:
        waiting.append(asyncio.create_task(use(client, name)))
        await asyncio.sleep(0)
    held.close()
    await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    assert bounded.loads == ["a 1", "b 1", "e 1", "c 1", "d 1"]


async def test_models_that_are_too_large_together_are_refused(bounded: BoundedModels) -> None:
    await bounded.start()
    with pytest.raises(InvalidRequestError, match=r"needs 4 models at once \(a, b, c, d\), which take 25 MB .* 20 MB"):
        await bounded.hold("a", "b", "c", "d")


async def test_models_that_turn_out_too_large_together_are_refused_then(bounded: BoundedModels, monkeypatch) -> None:
    await bounded.start()
    monkeypatch.setattr(Cost, "corrected", lambda cost, _: cost._replace(later_bytes=cost.later_bytes + 9 * MEGABYTE))
    with pytest.raises(InvalidRequestError, match=r"needs 2 models at once \(a, b\), which take 22 MB .* 20 MB"):
        await bounded.hold("a", "b")
    assert bounded.loads == ["a 1"]
    await bounded.use("a")


async def test_a_call_does_not_wait_for_the_second_model_of_another(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("c", "d")]
    pair = asyncio.create_task(bounded.hold("a", "b", client="one"))
    await asyncio.sleep(0)
    (await asyncio.wait_for(bounded.hold("a", client="another"), PATIENCE_S)).close()
    assert not pair.done()
    assert bounded.loads == ["c 1", "d 1", "a 1"]
    for held in helds:
        held.close()
    (await asyncio.wait_for(pair, PATIENCE_S)).close()


async def test_a_load_that_fails_fails_its_calls_and_is_tried_again_later(bounded: BoundedModels, monkeypatch) -> None:
    monkeypatch.setattr(model_memory, "_FIRST_PAUSE_S", 60.0)
    await bounded.start()
    bounded.unloadable.add("1")
    with capture_logs() as log:
        results = await asyncio.gather(*(bounded.hold("a") for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [ModelUnavailableError] * 3
    assert str(results[0]) == "model a could not be loaded; the server tries again in 60.0 s"
    [line] = [line for line in log if line["event"] == "a model could not be loaded"]
    assert (line["model"], line["why"]) == ("a", "RuntimeError: planted in 1")
    assert not bounded.serves("a")
    with pytest.raises(ModelUnavailableError):
        await bounded.hold("a")
    assert bounded.loads == ["a 1"]
    bounded.unloadable.clear()
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 60.0)
    monkeypatch.setattr(model_memory, "time", later)
    await bounded.use("a")
    assert bounded.serves("a")
    assert bounded.metrics.total("model_loads_total", model="a", outcome="failed") == 1


async def test_a_model_that_could_not_be_loaded_is_tried_again_after_a_reload(bounded: BoundedModels) -> None:
    await bounded.start()
    bounded.unloadable.add("1")
    with pytest.raises(ModelUnavailableError):
        await bounded.hold("a")
    bounded.unloadable.clear()
    assert await bounded.reload() == []
    assert bounded.serves("a")
    await bounded.use("a")


async def test_a_file_that_is_damaged_later_is_found_when_the_model_is_loaded(bounded: BoundedModels) -> None:
    await bounded.start()
    (bounded.root / "a" / "encoder.onnx").write_text("0")
    with pytest.raises(ModelUnavailableError):
        await bounded.hold("a")
    await bounded.use("b")


async def test_a_bundle_that_is_replaced_while_it_is_not_in_memory_is_a_new_manifest(bounded: BoundedModels) -> None:
    await bounded.start()
    bounded.write("a", "a", "2")
    with pytest.raises(ModelUnavailableError):
        await bounded.hold("a")  # nobody has told the server
    assert await bounded.reload() == []
    assert bounded.loads == []
    await bounded.use("a")
    assert bounded.loads == ["a 2"]


async def test_a_model_in_memory_is_replaced_by_one_that_was_loaded(bounded: BoundedModels) -> None:
    await bounded.start()
    for name in ("a", "b", "c"):
        await bounded.use(name)
    bounded.write("a", "a", "2")
    assert [line["event"] for line in await bounded.reload()] == ["evicted"]  # b, though a was used before
    await until(lambda: bounded.in_memory == ["a", "c"])
    assert bounded.versions()["a"] == "2"
    bounded.write("a", "a", "3")
    bounded.unloadable.add("3")
    assert [line["why"] for line in await bounded.reload() if "why" in line] == ["RuntimeError: planted in 3"]
    assert bounded.versions()["a"] == "2"
    await bounded.use("a")


@pytest.mark.parametrize("bounded", [{"max_model_wait_s": 2}], indirect=True)
async def test_a_reload_that_gets_no_room_leaves_the_models_as_they_were(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("a", "b", "c")]
    bounded.write("a", "a", "2")
    [line] = await bounded.reload()
    assert line["why"] == (
        "model a: there was no room for it within 2 s, since calls run on other models; SIGHUP tries again"
    )
    await until(lambda: not any(model.leaving for model in bounded.registry.served))
    assert bounded.versions()["a"] == "1"
    for held in helds:
        held.close()
    assert [line["event"] for line in await bounded.reload()] == ["evicted"]
    assert bounded.versions()["a"] == "2"


async def test_a_bundle_that_moved_is_loaded_from_where_it_lies(bounded: BoundedModels) -> None:
    await bounded.start()
    (bounded.root / "a").rename(bounded.root / "z")
    assert await bounded.reload() == []
    await bounded.use("a")


async def test_a_call_chooses_again_where_its_model_is_withdrawn(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("a", "b", "c")]
    [model] = bounded.named("d")
    with ExitStack() as held:
        waiting = asyncio.create_task(bounded.memory.bring([model], held, 0, "a client"))
        await until(lambda: bounded.metrics.total("model_waiting_calls") == 1)
        bounded.registry.withdraw("d")
        for each in helds:
            each.close()
        assert await asyncio.wait_for(waiting, PATIENCE_S) is False


@pytest.mark.parametrize("bounded", [{"queue_mb": 1}], indirect=True)
async def test_what_waits_is_bounded(bounded: BoundedModels) -> None:
    await bounded.start()
    helds = [await bounded.hold(name) for name in ("a", "b", "c")]
    waiting = asyncio.create_task(bounded.hold("d", size_bytes=MEGABYTE))
    await until(lambda: bounded.metrics.total("model_waiting_calls") == 1)
    with pytest.raises(QueueFullError, match=r"1 calls of 1001000 bytes wait for models; the limit is 1000000"):
        await bounded.hold("e", size_bytes=1)
    for held in helds:
        held.close()
    (await asyncio.wait_for(waiting, PATIENCE_S)).close()


async def test_a_server_that_stops_refuses_those_who_wait_and_loads_nothing_more(bounded: BoundedModels) -> None:
    await bounded.start()
    waiting = [asyncio.create_task(bounded.hold(name)) for name in ("a", "b")]
    await asyncio.sleep(0)  # they have begun to wait
    bounded.memory.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [DrainingError] * 2
    with pytest.raises(DrainingError):
        await bounded.hold("c")
    await bounded.memory.closed()
    assert len(bounded.loads) <= 1
    await bounded.registry.stop()


@pytest.mark.parametrize("bounded", [{"model_memory_mb": 6}], indirect=True)
async def test_a_model_that_is_larger_than_the_budget_is_refused_at_the_start(bounded: BoundedModels) -> None:
    with pytest.raises(
        BundleError, match=r"model a: takes 7 MB of memory, DRAGOMAN_MODEL_MEMORY_MB \(--model-memory-mb\) allows 6 MB$"
    ):
        await bounded.start()


@pinning("a", "b", "c")
async def test_a_model_that_has_no_room_beside_the_pinned_ones_is_refused(bounded: BoundedModels) -> None:
    with pytest.raises(
        BundleError, match=r"model d: takes 7 MB of .* allows 20 MB, of which pinned models take 19 MB$"
    ):
        await bounded.start()


@pinning("a", "x")
async def test_a_pinned_model_that_is_not_there_is_refused(bounded: BoundedModels) -> None:
    with pytest.raises(SettingsError, match=r"\(--pinned-models\): no model 'x'; there are: a, b, c, d, e"):
        await bounded.start()


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_calls_come_the_budget_is_kept_and_each_call_ends(tmp_path_factory, manifest, tokenizer, seed) -> None:
    chance = random.Random(seed)

    async def call(models: BoundedModels, names: Sequence[str], pause_s: float) -> None:
        with await models.hold(*names):
            assert all(model.pipeline is not None and model.busy for model in models.named(*names))
            await asyncio.sleep(pause_s)
            assert all(model.pipeline is not None for model in models.named(*names))

    async def run() -> None:
        root = tmp_path_factory.mktemp("models")
        models = BoundedModels(root, manifest, tokenizer, model_memory_mb=BUDGET_MB, pinned_models="a", **SMALL)
        for name in NAMES:
            models.write(name, name)
        await models.start()
        over: list[int] = []

        def note_loads() -> None:
            over.append(sum(model.cost_bytes for model in models.registry.in_memory))

        put = models.registry.put
        models.registry.put = lambda *own, **named: (put(*own, **named), note_loads())
        calls = [call(models, chance.sample(NAMES, chance.choice((1, 1, 2))), chance.random() / 100) for _ in range(30)]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*calls)
        assert max(over) <= BUDGET_MB * MEGABYTE
        assert "a" in models.in_memory
        models.memory.close()
        await models.memory.closed()
        await models.registry.stop()

    asyncio.run(run())
