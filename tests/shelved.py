"""Models in a cache folder that nobody had to import: copies of the default model."""

from pathlib import Path

from service.library.names import Name
from service.library.store import Entry, Origin, Store
from tests.e2e.bundles import copy_bundle
from tests.server_process import BUNDLE


def shelve(root: Path, name: Name, *, source: str = "en", target: str = "de", revision: str = "1" * 40) -> Entry:
    """Puts a copy of the default model into a cache folder, under a name and for two languages."""
    store = Store(root)
    with store.adding(name) as folder:
        model = f"{name.kind}-{source}-{target}"
        copy_bundle(BUNDLE, folder / "bundle", name=model, languages={"sources": [source], "targets": [target]})
        return store.put(name, "int8", folder, Origin(name=str(name), revision=revision, licence="apache-2.0"))
