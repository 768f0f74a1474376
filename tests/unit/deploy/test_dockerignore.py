"""The files that `docker build` sends, with BuildKit and with Docker's old builder, which skips more folders."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]


def regex(pattern: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    source = re.sub(r"\*\*/|\*\*|\*|[^*\[\]]", lambda found: parts.get(found[0], re.escape(found[0])), pattern)
    return re.compile(f"{source}(?:/.*)?")


def is_left_out(name: str) -> bool:
    out = False
    for line in LINES:
        if regex(line.removeprefix("!")).fullmatch(name):
            out = not line.startswith("!")
    return out


def sent(folder: Path, *, old: bool) -> Iterator[str]:
    """List the files of a folder that are sent."""
    for path in folder.iterdir():
        name = str(path.relative_to(ROOT))
        if not path.is_dir():
            if not is_left_out(name):
                yield name
        elif not (old and is_left_out(name)) or any(f"{line}/".startswith(f"!{name}/") for line in LINES):
            yield from sent(path, old=old)


@pytest.mark.parametrize("old", [True, False])
def test_the_bundles_of_models_are_sent_and_nothing_else_of_models(old: bool) -> None:
    names = set(sent(ROOT / "models", old=old))
    bundles = {path.parent for path in (ROOT / "models").glob("*/bundle/bundle.json")}
    assert bundles
    assert names == {str(path.relative_to(ROOT)) for folder in bundles for path in folder.iterdir()}
