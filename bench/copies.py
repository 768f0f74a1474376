"""Copies of a bundle that share no memory: each has weights that are no file of another."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

from dragoman.bundle import WEIGHTS, Manifest


def copied(bundle: Path, to: Path, **fields: Any) -> Path:
    """Copy a bundle.

    Args:
        to: the folder of the copy; its path is in the weights, behind what the graphs read.
    """
    manifest, copy = Manifest.read(bundle), shutil.copytree(bundle, to)
    content = (bundle / WEIGHTS).read_bytes() + str(to).encode()
    (copy / WEIGHTS).write_bytes(content)
    files = manifest.files | {WEIGHTS: hashlib.sha256(content).hexdigest()}
    manifest.model_copy(update={"files": files, **fields}).write(copy)
    return copy
