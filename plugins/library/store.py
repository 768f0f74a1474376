"""The user's cache folder: imported models by name and revision, each complete or absent."""

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
_USED: Final = "used"  # the file's time is the last time that the model was served
_KEY_CHARACTERS: Final = 12
_PARTIAL: Final = ".partial"  # searches for bundles skip such folders


class Origin(BaseModel):
    """The origin of a model, as an import records it.

    Attributes:
        name: the name in the request.
        revision: the revision of its files: for the hub a commit, else a hash.
        licence: the licence of the model, from its card; "": none is named.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    revision: str
    licence: str = ""


class Entry(NamedTuple):
    """A model in the cache folder.

    Attributes:
        folder: the folder with the bundle and its other files.
        origin: the origin of the model.
    """

    folder: Path
    origin: Origin

    @property
    def bundle(self) -> Path:
        """The folder of the bundle."""
        return self.folder / BUNDLE

    @property
    def name(self) -> str:
        """The name in requests to the cache."""
        return self.origin.name

    @property
    def model(self) -> str:
        """The name of the model in calls; "" if the bundle cannot be read."""
        try:
            return Manifest.read(self.bundle).name
        except BundleError:
            return ""

    @property
    def licence(self) -> str:
        """The licence of the model."""
        return self.origin.licence

    @property
    def megabytes(self) -> float:
        """The size of the model on disk."""
        return round(sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file()) / 1e6, 1)

    @property
    def last_used(self) -> str:
        """When the model was last served, in ISO 8601."""
        return datetime.fromtimestamp((self.folder / _USED).stat().st_mtime, UTC).isoformat(timespec="seconds")

    def note_use(self) -> None:
        """Record that the model is used now, if the folder is writable."""
        with suppress(OSError):
            (self.folder / _USED).touch()


class Store:
    """The cache folder.

    Args:
        root: the path of the folder; None: from the environment, `$XDG_CACHE_HOME/dragoman` or `~/.cache/dragoman`.
    """

    def __init__(self, root: Path | None = None) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.root: Final = root or Path(home) / "dragoman"

    def find(self, name: Name, precision: Precision, revision: str = "") -> Entry | None:
        """Find the last imported model of a name, without network access.

        Args:
            revision: the revision to find; "": any.
        """
        found = list(_entries(self._place(name), f"*-{precision}"))
        fitting = [entry for entry in found if revision in ("", entry.origin.revision)]
        return max(fitting, key=lambda entry: entry.folder.stat().st_mtime_ns, default=None)

    def entries(self) -> list[Entry]:
        """List all models, sorted by name."""
        return sorted(_entries(self.root / _MODELS, "**"), key=lambda entry: (entry.name, entry.folder))

    def remove(self, name: Name) -> int:
        """Remove the models imported under a name; returns the number of removed revisions and precisions."""
        everything = name == ALL_OF_FIREFOX
        if everything:
            self.firefox_list.unlink(missing_ok=True)
        named = {str(name), str(Path(name.value).resolve())}  # the name may be that of a folder that no longer exists
        found = [
            each for each in self.entries() if each.name in named or (everything and each.name.startswith(FIREFOX))
        ]
        for entry in found:
            gone = entry.folder.with_name(f".{entry.folder.name}{_PARTIAL}")
            entry.folder.rename(gone)  # renamed first, so that no process finds a half-removed model
            shutil.rmtree(gone)
        return len(found)

    @property
    def firefox_list(self) -> Path:
        """The path of the stored list of Firefox models; written at the first request for all of them."""
        return self.root / "firefox-models.json"

    @contextmanager
    def adding(self, name: Name) -> Iterator[Path]:
        """Give an empty folder to make a model in; no other process makes the same model meanwhile.

        Yields:
            The folder; removed at the end, unless :meth:`put` has taken it.

        Raises:
            OSError: the cache folder is not writable.
        """
        place = self._place(name)
        for old in place.glob(f".*{_PARTIAL}"):  # left by a killed process: no other process writes here now
            shutil.rmtree(old, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=place, prefix=".", suffix=_PARTIAL))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def put(self, name: Name, precision: Precision, folder: Path, origin: Origin) -> Entry:
        """Move a complete folder into the cache."""
        (folder / ORIGIN).write_text(origin.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (folder / _USED).touch()
        final = self._place(name) / f"{origin.revision[:_KEY_CHARACTERS]}-{precision}"
        shutil.rmtree(final, ignore_errors=True)
        folder.rename(final)
        return Entry(final, origin)

    def lock_file(self, name: Name) -> Path:
        """Give the file to lock while a model is imported; its folder exists.

        Raises:
            OSError: the cache folder is not writable.
        """
        file = self.root / _LOCKS / f"{str(self._place(name).relative_to(self.root)).replace(os.sep, '--')}.lock"
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def _place(self, name: Name) -> Path:
        value = Path(name.value).resolve().name if name.kind == "folder" else name.value
        return self.root / _MODELS / name.kind / value


def _entries(place: Path, pattern: str) -> Iterator[Entry]:
    for file in place.glob(f"{pattern}/{ORIGIN}"):
        with suppress(OSError, ValidationError):  # the model is being removed, or the file is no record of ours
            if not any(part.name.endswith(_PARTIAL) for part in file.parents):
                yield Entry(file.parent, Origin.model_validate_json(file.read_bytes()))
