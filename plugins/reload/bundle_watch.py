"""The bundles in the folders of the models, and their changes; no file of a bundle is opened."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dragoman.bundle import find_all_bundles
from plugins.file_identity import FileIdentity

# By bundle folder: the identities of all files, not only of the manifest, since a copy may write the manifest first.
Snapshot = Mapping[Path, frozenset[FileIdentity]]


def look(*roots: Path) -> Snapshot:
    """List the bundles at and below folders.

    Raises:
        OSError: a folder cannot be read.
    """
    snapshot = {}
    for path in find_all_bundles(roots):
        with suppress(FileNotFoundError):  # the bundle or one of its files was removed meanwhile
            snapshot[path] = frozenset(map(FileIdentity.of, filter(Path.is_file, path.iterdir())))
    return snapshot


def changed(acted_on: Snapshot, before: Snapshot, now: Snapshot) -> set[Path]:
    """Find bundles that are new, changed or gone, and have not changed since the last look: their writing has ended.

    Args:
        acted_on: the state that the server last took up.
        before: the previous look.
    """
    paths = acted_on.keys() | now.keys()
    return {path for path in paths if now.get(path) == before.get(path) != acted_on.get(path)}


def taken_up(acted_on: Snapshot, now: Snapshot, paths: set[Path]) -> Snapshot:
    """Give the state that the server has taken up after handling these bundles and no others."""
    others = {path: files for path, files in acted_on.items() if path not in paths}
    return others | {path: files for path, files in now.items() if path in paths}
