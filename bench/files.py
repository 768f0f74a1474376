"""The file of a report, there whole or not at all: a run may be ended at any time."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.files import write_whole


def write_json(path: Path | None, report: Mapping[str, Any]) -> None:
    """Write a report, if there is a file for it; what JSON does not have, such as a path, becomes text."""
    if path is not None:
        write_whole(path, json.dumps(report, indent=2, default=str).encode() + b"\n")
