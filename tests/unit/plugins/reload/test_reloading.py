"""The models follow their folder: real bundles on disk, whose engines the tests play."""

import asyncio
import gc
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dragoman.bundle import MANIFEST, Bundle
from service.registry import allocator
from service.registry.folders import one_name
from tests.unit.service.played_engine import until
from tests.unit.service.registry.followed_models import PATIENCE_S, FollowedModels


@pytest.fixture
async def models(tmp_path: Path, manifest, tokenizer) -> FollowedModels:
    (tmp_path / "models").mkdir()
    return FollowedModels(tmp_path / "models", manifest, tokenizer)


async def test_new_changed_and_removed_bundles_are_taken_up(models: FollowedModels) -> None:
    models.write("a", "en-de")
    models.write("b", "de-en")
    await models.start()
    models.write("a", "en-de", "2")
    shutil.rmtree(models.root / "b")
    models.write("c", "fr-de", "3")
    assert await models.reload() == []
    assert models.versions() == {"en-de": "2", "fr-de": "3"}
    assert [models.count(*of) for of in (("en-de", "loaded"), ("fr-de", "loaded"), ("de-en", "removed"))] == [1, 1, 1]
    assert (models.serves("en-de"), models.serves("fr-de"), models.serves("de-en")) == (True, True, False)


async def test_each_outcome_of_a_served_model_is_counted_from_0_on(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    [family] = models.metrics.model_reloads_total.collect()
    counts = {
        (sample.labels["model"], sample.labels["outcome"]): sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }
    assert counts == {("en-de", outcome): 0 for outcome in ("loaded", "refused", "removed", "kept")}


async def test_what_is_the_same_is_not_loaded_again_wherever_it_lies(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    assert await models.reload() == []
    (models.root / "a").rename(models.root / "b")
    assert await models.reload() == []
    shutil.rmtree(models.root / "b")
    models.write("b")
    assert await models.reload() == []
    assert models.loads == ["en-de 1"]


async def test_a_bundle_that_moved_is_known_where_it_lies_now(models: FollowedModels) -> None:
    models.write("a")
    models.write("other", "de-en")
    await models.start()
    (models.root / "a").rename(models.root / "b")
    assert await models.reload() == []
    (models.root / "b" / MANIFEST).write_text("{")
    [line] = await models.reload()
    assert (line["event"], line["model"]) == ("a bundle was refused", "en-de")
    assert models.registry.names == ["en-de", "de-en"]


async def test_one_signal_is_one_reload(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    await models.reload()
    assert not models.asked.is_set()


async def test_a_corrupt_bundle_is_refused_and_the_old_one_stays_until_it_is_whole(models: FollowedModels) -> None:
    path = models.write("a")
    await models.start()
    models.write("a", version="2")
    (path / "encoder.onnx").write_text("half of")
    [line] = await models.reload()
    assert (line["event"], line["path"], line["model"]) == ("a bundle was refused", str(path), "en-de")
    assert line["why"].startswith(f"{path / 'encoder.onnx'}: sha256 is")
    assert (models.versions(), models.errors, models.count("en-de", "refused")) == ({"en-de": "1"}, 1, 1)
    assert models.serves("en-de")
    models.write("a", version="2")
    assert await models.reload() == []
    assert (models.versions(), models.errors) == ({"en-de": "2"}, 0)


async def test_a_manifest_that_cannot_be_read_keeps_what_was_served_from_there(models: FollowedModels) -> None:
    path = models.write("a")
    models.write("b", "de-en")
    await models.start()
    (path / MANIFEST).write_text("{")
    [line] = await models.reload()
    assert line["model"] == "en-de"
    assert models.registry.names == ["en-de", "de-en"]


async def test_a_bundle_that_cannot_be_loaded_is_refused_and_tried_again_when_asked(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    models.write("a", version="2")
    models.unloadable.add("2")
    for _ in range(2):
        [line] = await models.reload()
        assert line["why"] == "RuntimeError: planted in 2"
    assert (models.versions(), models.errors, models.count("en-de", "refused")) == ({"en-de": "1"}, 1, 2)
    models.unloadable.clear()
    assert await models.reload() == []
    assert models.versions() == {"en-de": "2"}


async def test_the_memory_of_what_cannot_be_loaded_is_handed_back(models: FollowedModels, monkeypatch) -> None:
    models.write("a")
    await models.start()
    models.write("a", version="2")
    models.unloadable.add("2")
    handed_back = []
    monkeypatch.setattr(allocator, "give_back", lambda: handed_back.append(models.half_loaded() is None))
    gc.disable()  # which may be minutes away
    try:
        await models.reload()
    finally:
        gc.enable()
    assert handed_back == [True]


async def test_a_new_bundle_that_cannot_be_served_is_not_serving_under_its_own_name(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    (models.write("b", "de-en") / "decoder.onnx").unlink()
    [line] = await models.reload()
    assert line["model"] == "de-en"
    assert (models.serves("en-de"), models.serves("de-en")) == (True, False)
    (models.root / "b" / MANIFEST).write_text("{")
    [line] = await models.reload()
    assert line["model"] == ""
    shutil.rmtree(models.root / "b")
    assert await models.reload() == []
    assert models.errors == 0


async def test_the_last_model_stays_though_its_bundle_is_gone(models: FollowedModels) -> None:
    path = models.write("a")
    await models.start()
    shutil.rmtree(path)
    [line] = await models.reload()
    assert (line["event"], line["model"]) == ("the last model stays, though its bundle is gone", "en-de")
    assert (models.versions(), models.errors, models.count("en-de", "kept")) == ({"en-de": "1"}, 1, 1)
    assert models.serves("en-de")
    models.write("b", "de-en")
    assert await models.reload() == []
    assert (models.registry.names, models.errors) == (["de-en"], 0)


async def test_a_second_bundle_of_a_name_waits_until_the_first_is_gone(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    second = models.write("b", version="2")
    [line] = await models.reload()
    assert (line["path"], line["why"]) == (str(second), one_name("en-de", [models.root / "a", second]))
    assert models.versions() == {"en-de": "1"}
    shutil.rmtree(models.root / "a")
    assert await models.reload() == []
    assert (models.versions(), models.errors) == ({"en-de": "2"}, 0)


async def test_a_model_that_is_renamed_where_it_lies_goes_once_the_new_one_serves(models: FollowedModels) -> None:
    models.write("a")
    await models.start()
    models.write("a", "de-en", "2")
    models.unloadable.add("2")
    await models.reload()
    assert models.registry.names == ["en-de"]
    models.unloadable.clear()
    assert await models.reload() == []
    assert models.registry.names == ["de-en"]


async def test_the_folder_is_watched_if_so_set(tmp_path: Path, manifest, tokenizer) -> None:
    (tmp_path / "models").mkdir()
    models = FollowedModels(tmp_path / "models", manifest, tokenizer, watch_models_s=0.001)
    models.write("a")
    await models.start()
    following = asyncio.create_task(models.folders.follow(models.asked))
    with capture_logs() as log:
        path = models.write("b", "de-en")
        await until(lambda: models.registry.names == ["en-de", "de-en"])
        (path / "encoder.onnx").write_text("corrupt")
        await until(lambda: models.errors == 1)
        shutil.rmtree(path)
        await until(lambda: models.registry.names == ["en-de"])
    models.folders.stop()
    await asyncio.wait_for(following, PATIENCE_S)
    # However often it looked, it told of each bundle once; one that it saw half written it may have refused, too.
    assert [entry["model"] for entry in log if entry["event"] == "a bundle was refused"][-1] == "de-en"


async def test_of_a_bundle_that_stays_refused_is_told_once_while_others_are_taken_up(
    tmp_path: Path, manifest, tokenizer
) -> None:
    (tmp_path / "models").mkdir()
    models = FollowedModels(tmp_path / "models", manifest, tokenizer, watch_models_s=0.001)
    models.write("a")
    await models.start()
    following = asyncio.create_task(models.folders.follow(models.asked))
    with capture_logs() as log:
        models.write_at_once("b", "de-en", encoder="corrupt")
        await until(lambda: models.errors == 1)
        for number, name in enumerate(("fr-de", "it-de"), 2):
            models.write_at_once(name, name)
            await until(lambda number=number: len(models.registry.names) == number)
        models.write_at_once("c", "es-de", encoder="corrupt")
        await until(lambda: models.errors == 2)
    models.folders.stop()
    await asyncio.wait_for(following, PATIENCE_S)
    assert [entry["model"] for entry in log if entry["event"] == "a bundle was refused"] == ["de-en", "es-de"]
    assert (models.count("de-en", "refused"), models.count("es-de", "refused")) == (1, 1)


async def test_a_reload_that_fails_is_not_the_last(models: FollowedModels, monkeypatch) -> None:
    models.write("a")
    await models.start()
    models.write("a", version="2")
    following = asyncio.create_task(models.folders.follow(models.asked))
    with capture_logs() as log:
        with monkeypatch.context() as patch:
            patch.setattr("plugins.reload.reloading.plan", lambda *_: 1 / 0)
            models.asked.set()
            await until(lambda: bool(log))
        [line] = log
        assert (line["event"], line["error"]) == ("a reload failed", "ZeroDivisionError: division by zero")
        models.asked.set()
        await until(lambda: models.versions() == {"en-de": "2"})
    models.folders.stop()
    await asyncio.wait_for(following, PATIENCE_S)


async def test_a_server_that_stops_looks_at_no_further_bundle(models: FollowedModels, monkeypatch) -> None:
    models.write("a")
    await models.start()
    for folder in ("b", "c", "d"):
        models.write(folder, folder)
    opened: list[Path] = []
    open_bundle = Bundle.open

    def open_and_stop(path: Path) -> Bundle:
        opened.append(path)
        models.folders.stop()
        return open_bundle(path)

    monkeypatch.setattr(Bundle, "open", open_and_stop)
    models.asked.set()
    await asyncio.wait_for(models.folders.follow(models.asked), PATIENCE_S)
    assert len(opened) == 1
    assert models.loads == ["en-de 1"]
