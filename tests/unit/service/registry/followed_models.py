"""A folder of real bundles, whose engines the tests play, and what is served of it."""

import asyncio
import weakref
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from dragoman.bundle import MANIFEST, Bundle, Manifest, sha256
from dragoman.tokenizer import Tokenizer
from service.handlers.glossaries import Glossaries
from service.queue.mailbox import Mailbox
from service.registry.catalog import Pipeline, ServedModel
from service.registry.folders import folders_of
from service.registry.health import Health, name_of
from service.registry.loading import Loader
from service.registry.models import ModelRegistry
from service.registry.residency import residency_of
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.text.translator import Translator
from tests.unit.service.played import Engine, intake_of
from tests.unit.service.played_engine import until

PATIENCE_S = 120


class FollowedModels:
    """A folder of models and what is served of it."""

    def __init__(self, root: Path, manifest: Manifest, tokenizer: Tokenizer, **settings: Any) -> None:
        self.root, self._manifest, self._tokenizer = root, manifest, tokenizer
        self.metrics, self.health = Metrics(), Health()
        self.registry = ModelRegistry(self.metrics, self.health, "cpu", lambda catalog: None)
        self.settings = Settings(models=root, **settings)
        loader = Loader(self.settings, self.metrics, self._load)
        self.memory = residency_of(self.settings, self.metrics, self.registry, self.health, loader)
        self.folders = folders_of(self.settings, self.metrics, self.memory, Glossaries(), self.registry, self.health)
        self.asked, self.stop = asyncio.Event(), asyncio.Event()
        self.loads: list[str] = []
        self.unloadable: set[str] = set()

    def _load(self, bundle: Bundle, *_: object) -> ServedModel:
        content = (bundle.path / "encoder.onnx").read_text()
        self.loads.append(f"{bundle.manifest.name} {content}")
        if content in self.unloadable:
            loaded = Engine()
            self.half_loaded = weakref.ref(loaded)
            raise RuntimeError(f"planted\nin {content}")
        mailbox = Mailbox(9)
        translator = Translator(bundle.manifest, self._tokenizer)
        return ServedModel(bundle.manifest, 32, Pipeline(translator, mailbox, intake_of(mailbox)), Engine())

    def write_at_once(self, folder: str, name: str, **files: str) -> None:
        """Writes a bundle elsewhere and moves it in, so that nobody sees half of it; some files are as given."""
        path = self.write(f"../{folder}", name)
        for file, content in files.items():
            (path / f"{file}.onnx").write_text(content)
        path.rename(self.root / folder)

    def write(self, folder: str, name: str = "en-de", version: str = "1") -> Path:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        for file in ("encoder.onnx", "decoder.onnx", "place.onnx", "copy.onnx", "search.onnx", "tokenizer.model"):
            (path / file).write_text(version)
        files = {file.name: sha256(file) for file in path.iterdir() if file.name != MANIFEST}
        manifest = self._manifest.model_copy(update={"name": name, "files": files})
        (path / MANIFEST).write_text(manifest.model_dump_json())
        return path

    async def start(self) -> None:
        await self.folders.start(self.stop)
        self.registry.open()

    async def reload(self) -> list[dict]:
        """Asks for a reload and gives the log of it, but for lines of what went as it should."""
        with capture_logs() as log:
            self.asked.set()
            following = asyncio.create_task(self.folders.follow(self.asked))
            await until(lambda: any(entry["event"] == "reloaded" for entry in log))
            following.cancel()
            await asyncio.wait([following], timeout=PATIENCE_S)
        return [entry for entry in log if entry["event"] not in ("loaded", "reloaded", "retired")]

    def versions(self) -> dict[str, str]:
        """Of what is served."""
        return {
            model.name: next(
                version for version in "123" if model.manifest.files["encoder.onnx"] == self._sha256_of(version)
            )
            for model in self.registry.served
        }

    def _sha256_of(self, text: str) -> str:
        file = self.root.parent / "scratch"
        file.write_text(text)
        return sha256(file)

    def serves(self, model: str) -> bool | None:
        return self.health.is_serving(name_of(model))

    def count(self, model: str, outcome: str) -> float:
        return self.metrics.total("model_reloads_total", model=model, outcome=outcome)

    @property
    def errors(self) -> float:
        return self.metrics.total("bundle_errors")
