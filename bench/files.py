"""Files that are there whole or not at all: a run may be ended at any time."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_whole(path: Path, text: str) -> None:
    """Write beside, then rename."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def write_json(path: Path | None, report: Mapping[str, Any]) -> None:
    """Write a report, if there is a file for it; paths in it become text."""
    if path is not None:
        write_whole(path, json.dumps(report, indent=2, default=_path_as_text) + "\n")


def _path_as_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no part of a report")
