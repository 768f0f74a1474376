"""The operations of `dragoman models` on the user's cache folder."""

import sys
from collections.abc import Sequence

from dragoman.bundle import bundles_in
from dragoman.errors import DataError
from plugins.library.names import parse
from plugins.library.store import Entry, Store
from plugins.offline.in_process import read_settings
from service.model_locations import find


def entries() -> list[Entry]:
    """List the models of the cache folder."""
    return Store().entries()


def add(names: Sequence[str]) -> None:
    """Import models into the cache folder; raises as `service.model_locations.find` does.

    Raises:
        BundleError: a folder has neither a bundle nor a model to import.
    """
    cache = Store().root.resolve()
    for folder in find(read_settings(",".join(names)), bring_in=True).folders:
        if cache not in folder.resolve().parents:
            bundles_in(folder)  # raises the error
            print(f"{folder}: has a bundle, which needs no import", file=sys.stderr)


def remove(names: Sequence[str]) -> None:
    """Remove models from the cache folder.

    Raises:
        DataError: a model is not in the cache.
    """
    store = Store()
    for name in parse(names):
        if not store.remove(name):
            there = ", ".join(dict.fromkeys(entry.name for entry in store.entries())) or "none"
            raise DataError(f"{name}: is not in {store.root}; there are: {there}")
        print(f"{name}: removed", file=sys.stderr)
