"""Names of models become folders of bundles: from the cache folder, or by an import."""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dragoman.bundle import NAME_PATTERN, Precision
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS
from dragoman.files import write_whole
from plugins.library import firefox
from plugins.library.child import import_into
from plugins.library.fetching import LICENCES
from plugins.library.firefox import FirefoxModels
from plugins.library.names import ALL_OF_FIREFOX, Name, parse
from plugins.library.store import BUNDLE, Entry, Origin, Store
from service.model_locations import ModelLocations
from service.settings import PREFIX, Settings

FIREFOX_VARIABLE: Final = f"{PREFIX}FIREFOX_MODELS"
_RECORD: Final = "import.json"
_KEPT: Final = (BUNDLE, _RECORD)  # of what an import makes, beside licences


def locations(settings: Settings, *, bring_in: bool) -> ModelLocations:
    """Find the named models, as `service.model_locations.find` does."""
    names = parse(settings.models)
    store = Store()
    library = _Library(store, settings, bring_in=bring_in)
    folders: list[Path] = []
    for name in names:
        folders += [Path(name.value)] if name.kind == "bundles" else library.bundles(name)
    return ModelLocations(list(dict.fromkeys(folders)), library.pivot, library.on_demand)


class _Library:
    """Finds and imports the models of one server."""

    def __init__(self, store: Store, settings: Settings, *, bring_in: bool) -> None:
        self._store = store
        self._settings = settings
        self._bring_in = bring_in
        self._precision: Precision = "int8" if settings.device == "cpu" else "fp16"
        self._list: FirefoxModels | None = None
        self.pivot = ""
        self.on_demand = False

    def bundles(self, name: Name) -> list[Path]:
        """Give the bundles for a name."""
        if name == ALL_OF_FIREFOX:
            return self._all_of_firefox()
        entries = [self._entry(each) for each in self._ways(name)]
        return [entry.bundle for entry in entries if entry]

    def _ways(self, name: Name) -> list[Name]:
        """List the models for a name: two pairs of Firefox if there is no model for its own pair."""
        if name.kind != "firefox" or self._find(name):
            return [name]
        over = [Name("firefox", pair) for pair in firefox.over_pivot(name.value)]
        if self._bring_in and not (over and all(map(self._find, over))):
            over = [Name("firefox", pair) for pair in self._firefox().ways(name.value)]
        if len(over) > 1:
            self.pivot = firefox.PIVOT
        return over or [name]

    def _all_of_firefox(self) -> list[Path]:
        """Give the bundles of all models of Firefox; failed imports are reported and left out.

        Raises:
            DataError: no model could be imported.
        """
        self.pivot, self.on_demand = firefox.PIVOT, True
        names = [Name("firefox", pair) for pair in self._all_pairs()]
        missing = [name for name in names if not self._find(name)]
        found = []
        for name in names:
            if name in missing and self._bring_in:
                _say(f"{missing.index(name) + 1} of {len(missing)}:")
            try:
                found.append(self._entry(name))
            except SystemExit as error:
                if error.code != EXIT_BAD_ARGUMENTS:
                    raise
                _say(f"{name}: is left out")
        bundles = [entry.bundle for entry in found if entry]
        if self._bring_in and not bundles:
            raise DataError(f"{ALL_OF_FIREFOX}: none of {len(names)} models could be imported")
        return bundles

    def _all_pairs(self) -> list[str]:
        """List all pairs of Firefox, as they were at the first request for all of them."""
        kept = self._store.firefox_list
        if kept.exists():
            return FirefoxModels.model_validate_json(kept.read_bytes()).pairs
        if not self._bring_in:
            return []
        models = self._firefox()
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, models.model_dump_json().encode())
        return models.pairs

    def _firefox(self) -> FirefoxModels:
        if self._list is None:
            self._list = FirefoxModels.read(self._settings.firefox_models)
        return self._list

    def _find(self, name: Name) -> Entry | None:
        return self._store.find(name, self._precision, _state_of(name))

    def _entry(self, name: Name) -> Entry | None:
        """Give the model of a name; import it if it is missing."""
        entry = self._find(name)
        if entry is None and self._bring_in:
            with self._locked(name):
                entry = self._find(name) or self._imported(name)
        if entry is not None and self._bring_in:
            entry.note_use()
        return entry

    @contextmanager
    def _locked(self, name: Name) -> Iterator[None]:
        from filelock import FileLock, Timeout

        lock = FileLock(self._store.lock_file(name))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _say(f"another process imports {name}; waiting for it")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _imported(self, name: Name) -> Entry:
        _say(f"{name} is not in {self._store.root} yet: importing it, once")
        state = _state_of(name)
        with self._store.adding(name) as folder:
            made = folder / "made"
            model = ["--bundle", self._precision, "--name", _model_name(name)]
            import_into(made, [str(name), *model], {FIREFOX_VARIABLE: self._settings.firefox_models})
            record: dict[str, Any] = json.loads((made / _RECORD).read_text(encoding="utf-8"))
            for file in (*(made / kept for kept in _KEPT), *(f for pattern in LICENCES for f in made.glob(pattern))):
                file.rename(folder / file.name)
            shutil.rmtree(made)
            origin = Origin(name=str(name), revision=state or record["revision"], licence=record.get("licence", ""))
            entry = self._store.put(name, self._precision, folder, origin)
        _say(f"{name}: {entry.megabytes:,.1f} MB, licence {origin.licence or 'not said in its files'}")
        return entry


def _model_name(name: Name) -> str:
    """Name a model in requests: the last part of its own name."""
    own = str(name).replace(":", "-") if name.kind == "firefox" else Path(name.value).name
    fitting = re.sub(r"[^A-Za-z0-9._-]", "-", own).lstrip("._-")[:64]
    return fitting if NAME_PATTERN.fullmatch(fitting) else "model"


def _state_of(name: Name) -> str:
    """Give a hash that changes when a file of the folder is written; "" if the name is no folder."""
    if name.kind != "folder":
        return ""
    folder = Path(name.value)
    states = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            status = file.stat()
            states.append(f"{file.relative_to(folder)} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(states).encode()).hexdigest()


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
