"""docs/structure.md names every module once, and none that does not exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("dragoman", "service", "model", "export", "bench")


def test_structure_lists_exactly_the_modules_that_exist() -> None:
    page = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- `([^`]+\.py)`: \S", page, flags=re.MULTILINE)
    present = [
        str(file.relative_to(ROOT)) for room in ROOMS for file in (ROOT / room).rglob("*.py") if "v1" not in file.parts
    ]
    assert sorted(listed) == sorted(present)


def test_structure_speaks_only_of_files_that_exist() -> None:
    page = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:dragoman|service|model|export|bench)/[\w/]+\.py)`", page))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
