"""All models are in memory, or a plugin has models leave; the tests play their engines."""

import asyncio
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, DrainingError
from plugins.swap.model_memory import ModelMemory
from service import plugins
from service.registry.catalog import ServedModel
from service.registry.residency import Residency
from service.settings import SettingsError
from tests.unit.service.played_engine import until
from tests.unit.service.registry.followed_models import PATIENCE_S, FollowedModels


@pytest.fixture
async def models(tmp_path: Path, manifest, tokenizer) -> FollowedModels:
    (tmp_path / "models").mkdir()
    return FollowedModels(tmp_path / "models", manifest, tokenizer)


def loads(models: FollowedModels, outcome: str) -> float:
    return models.metrics.total("model_loads_total", model="a", outcome=outcome)


async def test_a_model_is_loaded_before_it_is_served_and_says_what_it_takes(models: FollowedModels) -> None:
    assert type(models.memory) is Residency
    await models.memory.serve(Bundle.open(models.write("a", "a")))
    [model] = models.registry.served
    assert model.takes_calls
    assert models.metrics.total("model_memory_bytes", model="a") == model.cost_bytes > 0
    assert (loads(models, "loaded"), loads(models, "failed")) == (1, 0)


async def test_a_model_that_cannot_be_loaded_is_not_served(models: FollowedModels) -> None:
    models.unloadable.add("1")
    with pytest.raises(BundleError, match="planted in 1"):
        await models.memory.serve(Bundle.open(models.write("a", "a")))
    assert models.registry.served == ()
    assert (loads(models, "loaded"), loads(models, "failed")) == (0, 1)


async def test_a_bundle_without_a_file_is_refused_at_the_start(models: FollowedModels) -> None:
    bundle = Bundle.open(models.write("a", "a"))
    models.memory.check([bundle])
    (bundle.path / "encoder.onnx").unlink()
    with pytest.raises(BundleError, match=r"encoder\.onnx"):
        models.memory.check([bundle])


class HeldLoads(FollowedModels):
    """Models whose loads wait until they may go on."""

    go_on = threading.Event()

    def _load(self, bundle: Bundle, *others: object) -> ServedModel:
        loaded = super()._load(bundle, *others)
        assert self.go_on.wait(PATIENCE_S)
        return loaded


async def test_a_server_that_stops_loads_nothing_more(tmp_path: Path, manifest, tokenizer) -> None:
    (tmp_path / "models").mkdir()
    models = HeldLoads(tmp_path / "models", manifest, tokenizer)
    bundle = Bundle.open(models.write("a", "a"))
    serving = asyncio.create_task(models.memory.serve(bundle))
    await until(lambda: bool(models.loads))
    models.memory.close()
    models.go_on.set()
    with pytest.raises(DrainingError):  # though the model is there, to be stopped with the others
        await serving
    assert models.registry.names == ["a"]
    with pytest.raises(DrainingError):
        await models.memory.serve(bundle)
    with ExitStack() as held, pytest.raises(DrainingError):
        await models.memory.bring(models.registry.served, held, 0, "")
    assert models.loads == ["a 1"]


@pytest.mark.parametrize("settings", [{"model_memory_mb": 20}, {"keep_alive_s": 1.0}])
async def test_models_leave_the_memory_by_a_plugin_only(
    settings: dict[str, float], tmp_path: Path, manifest, tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(FollowedModels(tmp_path, manifest, tokenizer, **settings).memory, ModelMemory)
    monkeypatch.setattr(plugins, "load", lambda group: [])
    with pytest.raises(SettingsError, match=r"an entry point of dragoman\.residency"):
        FollowedModels(tmp_path, manifest, tokenizer, **settings)
