"""The user's cache folder: imported models, each by its name and revision, whole or not there at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.bundle import Manifest, Precision
from dragoman.errors import BundleError
from plugins.library.names import ALL_OF_FIREFOX, FIREFOX, Name

BUNDLE: Final = "bundle"
ORIGIN: Final = "origin.json"
_MODELS: Final = "models"
_LOCKS: Final = "locks"
_USED: Final = "used"  # its time says when the model was served last
_KEY_CHARACTERS: Final = 12
_PARTIAL: Final = ".partial"  # such folders no look for bundles enters


class Origin(BaseModel):
    """Where a model comes from: what an import says of it.

    Attributes:
        name: under which it was asked for.
        revision: of its files: of the hub a commit, else a hash.
        licence: of the model, as its card says it; "": it says none.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    revision: str
    licence: str = ""


class Entry(NamedTuple):
    """A model in the cache folder.

    Attributes:
        folder: of the bundle, and what is kept with it.
        origin: of the model.
    """

    folder: Path
    origin: Origin

    @property
    def bundle(self) -> Path:
        """Its folder."""
        return self.folder / BUNDLE

    @property
    def name(self) -> str:
        """Under which it is asked for."""
        return self.origin.name

    @property
    def model(self) -> str:
        """The name of the model in requests; "" where the bundle cannot be read."""
        try:
            return Manifest.read(self.bundle).name
        except BundleError:
            return ""

    @property
    def licence(self) -> str:
        """Of the model."""
        return self.origin.licence

    @property
    def megabytes(self) -> float:
        """What it takes on disk."""
        return round(sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file()) / 1e6, 1)

    @property
    def last_used(self) -> str:
        """When it was served last, as ISO 8601 writes it."""
        return datetime.fromtimestamp((self.folder / _USED).stat().st_mtime, UTC).isoformat(timespec="seconds")

    def note_use(self) -> None:
        """Note that it is used now, unless the folder cannot be written to."""
        with suppress(OSError):
            (self.folder / _USED).touch()


class Store:
    """The cache folder.

    Args:
        root: where it lies; None: as the environment says, `$XDG_CACHE_HOME/dragoman` or `~/.cache/dragoman`.
    """

    def __init__(self, root: Path | None = None) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.root: Final = root or Path(home) / "dragoman"

    def find(self, name: Name, precision: Precision, revision: str = "") -> Entry | None:
        """Find the model that was imported last under a name; no network is asked.

        Args:
            name: of the model.
            precision: of its bundle.
            revision: that it has; "": any.
        """
        found = list(_entries(self._place(name), f"*-{precision}"))
        fitting = [entry for entry in found if revision in ("", entry.origin.revision)]
        return max(fitting, key=lambda entry: entry.folder.stat().st_mtime_ns, default=None)

    def entries(self) -> list[Entry]:
        """List all, by their names."""
        return sorted(_entries(self.root / _MODELS, "**"), key=lambda entry: (entry.name, entry.folder))

    def remove(self, name: Name) -> int:
        """Remove what was imported under a name; gives how many revisions and precisions that were."""
        everything = name == ALL_OF_FIREFOX
        if everything:
            self.firefox_list.unlink(missing_ok=True)
        named = {str(name), str(Path(name.value).resolve())}  # of a folder that may be gone
        found = [
            each for each in self.entries() if each.name in named or (everything and each.name.startswith(FIREFOX))
        ]
        for entry in found:
            gone = entry.folder.with_name(f".{entry.folder.name}{_PARTIAL}")
            entry.folder.rename(gone)  # at once: nobody finds a half of it
            shutil.rmtree(gone)
        return len(found)

    @property
    def firefox_list(self) -> Path:
        """Where Firefox's list of models is kept, once all of them were asked for."""
        return self.root / "firefox-models.json"

    @contextmanager
    def adding(self, name: Name) -> Iterator[Path]:
        """Give an empty folder in which a model is made, while no other process makes the same one.

        Yields:
            The folder; it is gone at the end, unless :meth:`put` took it.

        Raises:
            OSError: nothing can be written there.
        """
        place = self._place(name)
        for old in place.glob(f".*{_PARTIAL}"):  # of a process that was killed: nobody else writes here now
            shutil.rmtree(old, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=place, prefix=".", suffix=_PARTIAL))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def put(self, name: Name, precision: Precision, folder: Path, origin: Origin) -> Entry:
        """Take a folder that is complete."""
        (folder / ORIGIN).write_text(origin.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (folder / _USED).touch()
        final = self._place(name) / f"{origin.revision[:_KEY_CHARACTERS]}-{precision}"
        shutil.rmtree(final, ignore_errors=True)
        folder.rename(final)
        return Entry(final, origin)

    def lock_file(self, name: Name) -> Path:
        """Say which file is locked while a model is imported; its folder is there.

        Raises:
            OSError: nothing can be written there.
        """
        file = self.root / _LOCKS / f"{str(self._place(name).relative_to(self.root)).replace(os.sep, '--')}.lock"
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def _place(self, name: Name) -> Path:
        value = Path(name.value).resolve().name if name.kind == "folder" else name.value
        return self.root / _MODELS / name.kind / value


def _entries(place: Path, pattern: str) -> Iterator[Entry]:
    for file in place.glob(f"{pattern}/{ORIGIN}"):
        with suppress(OSError, ValidationError):  # it is just being removed, or is none of ours
            if not any(part.name.endswith(_PARTIAL) for part in file.parents):
                yield Entry(file.parent, Origin.model_validate_json(file.read_bytes()))
