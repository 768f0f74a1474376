"""The bundles in the folders of the models, and changes of them; no file of a bundle is opened."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dragoman.bundle import find_bundles
from plugins.file_identity import FileIdentity

# Of each bundle's folder: all files, not the manifest alone, since a copy may write that one first.
Snapshot = Mapping[Path, frozenset[FileIdentity]]


def look(*roots: Path) -> Snapshot:
    """List what lies at and below folders now.

    Raises:
        OSError: one cannot be read.
    """
    snapshot = {}
    for path in (path for root in roots for path in find_bundles(root)):
        with suppress(FileNotFoundError):  # it, or a file of it, has gone since it was found
            snapshot[path] = frozenset(map(FileIdentity.of, filter(Path.is_file, path.iterdir())))
    return snapshot


def changed(acted_on: Snapshot, before: Snapshot, now: Snapshot) -> set[Path]:
    """Find the bundles that are new, different or gone, and were already so a look ago: nobody writes them now.

    Args:
        acted_on: what the server took up last.
        before: the look before this one.
    """
    paths = acted_on.keys() | now.keys()
    return {path for path in paths if now.get(path) == before.get(path) != acted_on.get(path)}


def taken_up(acted_on: Snapshot, now: Snapshot, paths: set[Path]) -> Snapshot:
    """Give the snapshot that is acted on once the server has taken up these bundles, and no others."""
    others = {path: files for path, files in acted_on.items() if path not in paths}
    return others | {path: files for path, files in now.items() if path in paths}
