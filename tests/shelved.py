"""Models in a cache folder that nobody had to import there: copies of a bundle."""

from pathlib import Path
from typing import Any

from dragoman.language_marks import Languages
from plugins.library.names import Name
from plugins.library.store import Entry, Origin, Store
from tests.e2e.bundles import copy_bundle, own_weights
from tests.server_process import BUNDLE


def shelve(
    root: Path,
    name: Name,
    *,
    source: str = "en",
    target: str = "de",
    revision: str = "1" * 40,
    bundle: Path = BUNDLE,
    has_own_weights: bool = False,
) -> Entry:
    """Puts a copy of a bundle into a cache folder, under a name and for two languages.

    Args:
        root: the cache folder.
        name: of the model.
        source: the language that it says it reads.
        target: the one that it says it writes.
        revision: that it has.
        bundle: the default model, or another.
        has_own_weights: its weights are a file of its own, so that it shares no memory with other copies.
    """
    store = Store(root)
    with store.adding(name) as folder:
        model = f"{name.kind}-{source}-{target}"
        fields: dict[str, Any] = {"name": model, "languages": Languages.pair(source, target).model_dump()}
        copy = copy_bundle(bundle, folder / "bundle", **fields)
        if has_own_weights:
            own_weights(copy, str(name))
        return store.put(name, "int8", folder, Origin(name=str(name), revision=revision, licence="apache-2.0"))
