"""Bundles for servers of several models: the default model under other names, made in no time."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from tests.server_process import BUNDLE


def copy_bundle(source: Path, target: Path, **fields: Any) -> Path:
    """Makes a bundle of the same graphs and another manifest, whole at once, as export does.

    Args:
        source: the bundle.
        target: its copy, which replaces what is there.
        fields: of the manifest, that differ.
    """
    partial = target.with_name(target.name + ".partial")
    shutil.copytree(source, partial, copy_function=os.link)
    manifest = json.loads((source / "bundle.json").read_text())
    (partial / "bundle.json").unlink()  # a link: writing to it would write to the original
    (partial / "bundle.json").write_text(json.dumps(manifest | fields))
    if target.exists():
        old = target.with_name(target.name + ".old")
        target.rename(old)
        partial.rename(target)
        shutil.rmtree(old)
    else:
        partial.rename(target)
    return target


def own_weights(bundle: Path, mark: str) -> None:
    """Makes the weights of a copy another file: equal files would be kept in memory once.

    Args:
        bundle: the copy.
        mark: stands behind what the graphs read, another one for each copy.
    """
    weights = bundle / "weights.bin"
    content = weights.read_bytes() + mark.encode()
    weights.unlink()  # a link
    weights.write_bytes(content)
    manifest = json.loads((bundle / "bundle.json").read_text())
    manifest["files"]["weights.bin"] = hashlib.sha256(content).hexdigest()
    (bundle / "bundle.json").write_text(json.dumps(manifest))


def copy_pair(folder: Path, source: str, target: str) -> Path:
    """Makes a bundle of the default model that says it were of another pair of languages, whose name it has.

    Args:
        folder: of the models.
        source: the language that it says it reads.
        target: the one that it says it writes.
    """
    name = f"{source}-{target}"
    return copy_bundle(BUNDLE, folder / name, name=name, languages={"sources": [source], "targets": [target]})
