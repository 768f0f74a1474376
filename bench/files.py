"""Files that are there whole or not at all: a run may be ended at any time."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write beside, then rename."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
