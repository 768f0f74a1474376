"""docs/structure.md names nothing that is not there, and leaves out no package."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_structure_speaks_only_of_files_and_packages_that_exist() -> None:
    page = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+/(?:\w+\.py)?)`", page))
    assert named
    assert [
        name
        for name in sorted(named)
        if not any((top / name).exists() for top in (ROOT, ROOT / "service", ROOT / "plugins"))
    ] == []


def test_structure_has_every_package_of_the_service_and_its_plugins() -> None:
    page = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
    inits = [*(ROOT / "service").glob("*/__init__.py"), *(ROOT / "plugins").glob("*/__init__.py")]
    packages = {f"{file.parent.relative_to(ROOT)}/" for file in inits}
    assert packages <= set(re.findall(r"`((?:service|plugins)/\w+/)`", page))
