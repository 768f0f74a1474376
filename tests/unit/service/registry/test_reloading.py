"""The models follow their folder: real bundles on disk, whose engines the tests play."""

import asyncio
import gc
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dragoman.bundle import MANIFEST, Bundle, Manifest, sha256
from dragoman.errors import BundleError
from service.queue.mailbox import Mailbox
from service.registry import allocator
from service.registry.catalog import ServedModel
from service.registry.health import Health, name_of
from service.registry.loading import LoadedModel
from service.registry.models import ModelRegistry
from service.registry.reloading import ModelReloader
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.text.translator import Translator
from tests.unit.service.played import Engine

PATIENCE_S = 120


class House:
    """A folder of models and what is served of it."""

    def __init__(self, root: Path, manifest: Manifest, tokenizer, watch_models_s: float = 0.0) -> None:
        self.root, self._manifest, self._tokenizer = root, manifest, tokenizer
        self.metrics, self.health = Metrics(), Health()
        self.registry = ModelRegistry(self.metrics, self.health, "cpu", lambda catalog: None)
        settings = Settings(models=root, watch_models_s=watch_models_s)
        self.reloading = ModelReloader(settings, self.metrics, self.registry, self.health, self._load)
        self.asked, self.stop = asyncio.Event(), asyncio.Event()
        self.loads: list[str] = []
        self.unloadable: set[str] = set()

    def _load(self, bundle: Bundle, settings, metrics, loop) -> LoadedModel:
        content = (bundle.path / "encoder.onnx").read_text()
        self.loads.append(f"{bundle.manifest.name} {content}")
        if content in self.unloadable:
            loaded = Engine()
            self.half_loaded = weakref.ref(loaded)
            raise RuntimeError(f"planted\nin {content}")
        return LoadedModel(
            ServedModel(bundle.manifest, Translator(bundle.manifest, self._tokenizer), Mailbox(9)), Engine()
        )

    def write_at_once(self, folder: str, name: str, **files: str) -> None:
        """Writes a bundle elsewhere and moves it in, so that nobody sees half of it; some files are as given."""
        path = self.write(f"../{folder}", name)
        for file, content in files.items():
            (path / f"{file}.onnx").write_text(content)
        path.rename(self.root / folder)

    def write(self, folder: str, name: str = "en-de", version: str = "1") -> Path:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        for file in ("encoder.onnx", "decoder.onnx", "place.onnx", "copy.onnx", "tokenizer.model"):
            (path / file).write_text(version)
        files = {file.name: sha256(file) for file in path.iterdir() if file.name != MANIFEST}
        manifest = self._manifest.model_copy(update={"name": name, "files": files})
        (path / MANIFEST).write_text(manifest.model_dump_json())
        return path

    async def start(self) -> None:
        await self.reloading.start(self.stop)
        self.registry.open()

    async def reload(self) -> list[dict]:
        """Asks for a reload and gives the log of it, but for the line that ends it."""
        with capture_logs() as log:
            self.asked.set()
            following = asyncio.create_task(self.reloading.follow(self.asked))
            await until(lambda: any(entry["event"] == "reloaded" for entry in log))
            self.reloading.stop()
            await asyncio.wait_for(following, PATIENCE_S)
            self.reloading._stopped.clear()
        return [entry for entry in log if entry["event"] not in ("reloaded", "retired")]

    def versions(self) -> dict[str, str]:
        """Of what is served."""
        return {
            loaded.name: next(
                version for version in "123" if loaded.model.manifest.files["encoder.onnx"] == self._sha256_of(version)
            )
            for loaded in self.registry.models
        }

    def _sha256_of(self, text: str) -> str:
        file = self.root.parent / "scratch"
        file.write_text(text)
        return sha256(file)

    def serves(self, model: str) -> bool | None:
        return self.health.is_serving(name_of(model))

    def count(self, model: str, outcome: str) -> float:
        return self.metrics.model_reloads_total.labels(model, outcome)._value.get()

    @property
    def errors(self) -> float:
        return self.metrics.bundle_errors._value.get()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture
async def house(tmp_path: Path, manifest, tokenizer) -> House:
    (tmp_path / "models").mkdir()
    return House(tmp_path / "models", manifest, tokenizer)


async def test_all_bundles_are_served_at_the_start(house: House) -> None:
    house.write("a", "en-de")
    house.write("b/bundle", "de-en", "2")
    await house.start()
    assert house.versions() == {"en-de": "1", "de-en": "2"}
    assert house.errors == 0


async def test_at_the_start_one_bad_bundle_is_fatal(house: House) -> None:
    house.write("a", "en-de")
    (house.write("b", "de-en") / "decoder.onnx").write_text("corrupt")
    with pytest.raises(BundleError, match=r"decoder\.onnx: sha256 is"):
        await house.start()
    assert house.loads == []


async def test_at_the_start_two_bundles_of_a_name_are_fatal(house: House) -> None:
    house.write("a")
    house.write("b")
    with pytest.raises(BundleError, match="2 bundles are called 'en-de'"):
        await house.start()


async def test_at_the_start_an_empty_folder_is_fatal(house: House) -> None:
    with pytest.raises(BundleError, match="there is no bundle"):
        await house.start()


async def test_a_start_that_is_told_to_stop_loads_nothing_more(house: House) -> None:
    house.write("a")
    house.stop.set()
    await house.reloading.start(house.stop)
    assert house.loads == []


async def test_new_changed_and_removed_bundles_are_taken_up(house: House) -> None:
    house.write("a", "en-de")
    house.write("b", "de-en")
    await house.start()
    house.write("a", "en-de", "2")
    shutil.rmtree(house.root / "b")
    house.write("c", "fr-de", "3")
    assert await house.reload() == []
    assert house.versions() == {"en-de": "2", "fr-de": "3"}
    assert [house.count(*of) for of in (("en-de", "loaded"), ("fr-de", "loaded"), ("de-en", "removed"))] == [1, 1, 1]
    assert (house.serves("en-de"), house.serves("fr-de"), house.serves("de-en")) == (True, True, False)


async def test_what_is_the_same_is_not_loaded_again_wherever_it_lies(house: House) -> None:
    house.write("a")
    await house.start()
    assert await house.reload() == []
    (house.root / "a").rename(house.root / "b")
    assert await house.reload() == []
    shutil.rmtree(house.root / "b")
    house.write("b")
    assert await house.reload() == []
    assert house.loads == ["en-de 1"]


async def test_a_bundle_that_moved_is_known_where_it_lies_now(house: House) -> None:
    house.write("a")
    house.write("other", "de-en")
    await house.start()
    (house.root / "a").rename(house.root / "b")
    assert await house.reload() == []
    (house.root / "b" / MANIFEST).write_text("{")
    [line] = await house.reload()
    assert (line["event"], line["model"]) == ("a bundle was refused", "en-de")
    assert house.registry.names == ["en-de", "de-en"]


async def test_one_signal_is_one_reload(house: House) -> None:
    house.write("a")
    await house.start()
    await house.reload()
    assert not house.asked.is_set()


async def test_a_corrupt_bundle_is_refused_and_the_old_one_stays_until_it_is_whole(house: House) -> None:
    path = house.write("a")
    await house.start()
    house.write("a", version="2")
    (path / "encoder.onnx").write_text("half of")
    [line] = await house.reload()
    assert (line["event"], line["path"], line["model"]) == ("a bundle was refused", str(path), "en-de")
    assert line["why"].startswith(f"{path / 'encoder.onnx'}: sha256 is")
    assert (house.versions(), house.errors, house.count("en-de", "refused")) == ({"en-de": "1"}, 1, 1)
    assert house.serves("en-de")
    house.write("a", version="2")
    assert await house.reload() == []
    assert (house.versions(), house.errors) == ({"en-de": "2"}, 0)


async def test_a_manifest_that_cannot_be_read_keeps_what_was_served_from_there(house: House) -> None:
    path = house.write("a")
    house.write("b", "de-en")
    await house.start()
    (path / MANIFEST).write_text("{")
    [line] = await house.reload()
    assert line["model"] == "en-de"
    assert house.registry.names == ["en-de", "de-en"]


async def test_a_bundle_that_cannot_be_loaded_is_refused_and_tried_again_when_asked(house: House) -> None:
    house.write("a")
    await house.start()
    house.write("a", version="2")
    house.unloadable.add("2")
    for _ in range(2):
        [line] = await house.reload()
        assert line["why"] == "RuntimeError: planted in 2"
    assert (house.versions(), house.errors, house.count("en-de", "refused")) == ({"en-de": "1"}, 1, 2)
    house.unloadable.clear()
    assert await house.reload() == []
    assert house.versions() == {"en-de": "2"}


async def test_the_memory_of_what_cannot_be_loaded_is_handed_back(house: House, monkeypatch) -> None:
    house.write("a")
    await house.start()
    house.write("a", version="2")
    house.unloadable.add("2")
    handed_back = []
    monkeypatch.setattr(allocator, "give_back", lambda: handed_back.append(house.half_loaded() is None))
    gc.disable()  # which may be minutes away
    try:
        await house.reload()
    finally:
        gc.enable()
    assert handed_back == [True]


async def test_a_new_bundle_that_cannot_be_served_is_not_serving_under_its_own_name(house: House) -> None:
    house.write("a")
    await house.start()
    (house.write("b", "de-en") / "decoder.onnx").unlink()
    [line] = await house.reload()
    assert line["model"] == "de-en"
    assert (house.serves("en-de"), house.serves("de-en")) == (True, False)
    (house.root / "b" / MANIFEST).write_text("{")
    [line] = await house.reload()
    assert line["model"] == ""
    shutil.rmtree(house.root / "b")
    assert await house.reload() == []
    assert house.errors == 0


async def test_the_last_model_stays_though_its_bundle_is_gone(house: House) -> None:
    path = house.write("a")
    await house.start()
    shutil.rmtree(path)
    [line] = await house.reload()
    assert (line["event"], line["model"]) == ("the last model stays, though its bundle is gone", "en-de")
    assert (house.versions(), house.errors, house.count("en-de", "kept")) == ({"en-de": "1"}, 1, 1)
    assert house.serves("en-de")
    house.write("b", "de-en")
    assert await house.reload() == []
    assert (house.registry.names, house.errors) == (["de-en"], 0)


async def test_a_second_bundle_of_a_name_waits_until_the_first_is_gone(house: House) -> None:
    house.write("a")
    await house.start()
    second = house.write("b", version="2")
    [line] = await house.reload()
    assert (line["path"], line["why"]) == (str(second), "2 bundles are called 'en-de'; keep one of them")
    assert house.versions() == {"en-de": "1"}
    shutil.rmtree(house.root / "a")
    assert await house.reload() == []
    assert (house.versions(), house.errors) == ({"en-de": "2"}, 0)


async def test_a_model_that_is_renamed_where_it_lies_goes_once_the_new_one_serves(house: House) -> None:
    house.write("a")
    await house.start()
    house.write("a", "de-en", "2")
    house.unloadable.add("2")
    await house.reload()
    assert house.registry.names == ["en-de"]
    house.unloadable.clear()
    assert await house.reload() == []
    assert house.registry.names == ["de-en"]


async def test_the_folder_is_watched_if_so_set(tmp_path: Path, manifest, tokenizer) -> None:
    (tmp_path / "models").mkdir()
    house = House(tmp_path / "models", manifest, tokenizer, watch_models_s=0.001)
    house.write("a")
    await house.start()
    following = asyncio.create_task(house.reloading.follow(house.asked))
    with capture_logs() as log:
        path = house.write("b", "de-en")
        await until(lambda: house.registry.names == ["en-de", "de-en"])
        (path / "encoder.onnx").write_text("corrupt")
        await until(lambda: house.errors == 1)
        shutil.rmtree(path)
        await until(lambda: house.registry.names == ["en-de"])
    house.reloading.stop()
    await asyncio.wait_for(following, PATIENCE_S)
    # However often it looked, it told of each bundle once; one that it saw half written it may have refused, too.
    assert [entry["model"] for entry in log if entry["event"] == "a bundle was refused"][-1] == "de-en"


async def test_of_a_bundle_that_stays_refused_is_told_once_while_others_are_taken_up(
    tmp_path: Path, manifest, tokenizer
) -> None:
    (tmp_path / "models").mkdir()
    house = House(tmp_path / "models", manifest, tokenizer, watch_models_s=0.001)
    house.write("a")
    await house.start()
    following = asyncio.create_task(house.reloading.follow(house.asked))
    with capture_logs() as log:
        house.write_at_once("b", "de-en", encoder="corrupt")
        await until(lambda: house.errors == 1)
        for number, name in enumerate(("fr-de", "it-de"), 2):
            house.write_at_once(name, name)
            await until(lambda number=number: len(house.registry.names) == number)
        house.write_at_once("c", "es-de", encoder="corrupt")
        await until(lambda: house.errors == 2)
    house.reloading.stop()
    await asyncio.wait_for(following, PATIENCE_S)
    assert [entry["model"] for entry in log if entry["event"] == "a bundle was refused"] == ["de-en", "es-de"]
    assert (house.count("de-en", "refused"), house.count("es-de", "refused")) == (1, 1)


async def test_a_reload_that_fails_is_not_the_last(house: House, monkeypatch) -> None:
    house.write("a")
    await house.start()
    house.write("a", version="2")
    following = asyncio.create_task(house.reloading.follow(house.asked))
    with capture_logs() as log:
        with monkeypatch.context() as patch:
            patch.setattr("service.registry.reloading.plan", lambda *_: 1 / 0)
            house.asked.set()
            await until(lambda: bool(log))
        [line] = log
        assert (line["event"], line["error"]) == ("a reload failed", "ZeroDivisionError: division by zero")
        house.asked.set()
        await until(lambda: house.versions() == {"en-de": "2"})
    house.reloading.stop()
    await asyncio.wait_for(following, PATIENCE_S)


async def test_a_server_that_stops_looks_at_no_further_bundle(house: House, monkeypatch) -> None:
    house.write("a")
    await house.start()
    for folder in ("b", "c", "d"):
        house.write(folder, folder)
    looks: list[Path] = []

    def look_and_stop(path: Path) -> Bundle:
        looks.append(path)
        house.reloading.stop()
        return Bundle.open(path)

    monkeypatch.setattr("service.registry.reloading._verified", look_and_stop)
    house.asked.set()
    await asyncio.wait_for(house.reloading.follow(house.asked), PATIENCE_S)
    assert len(looks) == 1
    assert house.loads == ["en-de 1"]
