"""What the README says of settings and files is so."""

import re
from pathlib import Path

from service.settings import Settings

ROOT = Path(__file__).parents[3]
LOAD_TESTING = (ROOT / "docs" / "load-testing.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_setting_stands_in_the_readme_with_its_default() -> None:
    expected = [
        f"| `--{name.replace('_', '-')}` | `DRAGOMAN_{name.upper()}` | {_shown(field.default)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    assert [line for line in README.splitlines() if line.startswith("| `--")] == expected


def _shown(default: object) -> str:
    return "none" if default == "" else f"`{default}`"


def test_commands_that_measure_read_files_of_the_repository() -> None:
    measuring = README.partition("## Measuring")[2] + LOAD_TESTING
    data = re.findall(r"--data (\S+)", measuring)
    assert len(data) >= 4
    assert [path for path in data if not (ROOT / path).is_file()] == []


def test_links_lead_somewhere() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
