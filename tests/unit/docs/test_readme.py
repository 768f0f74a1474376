"""What README and pages say of files is so."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOAD_TESTING = (ROOT / "docs" / "load-testing.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_commands_that_measure_read_files_of_the_repository() -> None:
    data = re.findall(r"--data (\S+)", LOAD_TESTING)
    assert len(data) >= 4
    assert [path for path in data if not (ROOT / path).is_file()] == []


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 900


def test_the_index_has_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")} - {Path("README.md")}
    listed = {Path(link) for link in re.findall(r"\]\(([^)#]+)\)", index)}
    assert [page for page in pages if not listed & {page, page.parent}] == []
