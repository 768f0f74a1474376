"""What README and pages say of settings and files is so."""

import re
from pathlib import Path

from service.settings import Settings

ROOT = Path(__file__).parents[3]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
LOAD_TESTING = (ROOT / "docs" / "load-testing.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_setting_stands_in_its_page_with_its_default() -> None:
    expected = [
        f"| `--{name.replace('_', '-')}` | `DRAGOMAN_{name.upper()}` | {_shown(field.default)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    assert [line for line in CONFIGURATION.splitlines() if line.startswith("| `--")] == expected


def _shown(default: object) -> str:
    return "none" if default == "" else f"`{default}`"


def test_commands_that_measure_read_files_of_the_repository() -> None:
    data = re.findall(r"--data (\S+)", LOAD_TESTING)
    assert len(data) >= 4
    assert [path for path in data if not (ROOT / path).is_file()] == []


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 900


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([^)#/]+)\)", index))
