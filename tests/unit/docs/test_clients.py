"""docs/clients.md leads to the very files that are tested, and says how each is run."""

from pathlib import Path

import pytest

from tests.clients.languages import LANGUAGES, Language

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/clients.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
def test_a_row_of_the_page_has_the_files_and_the_command_of_a_client(language: Language) -> None:
    files = [language.folder / name for name in ("install.sh", "build.sh", language.file)]
    links = [f"[{file.name}](../{file.relative_to(ROOT)})" for file in files if file.exists()]
    assert len(links) >= 2
    command = language.run.replace("ADDRESS", "127.0.0.1:50051")
    [row] = [line for line in PAGE.splitlines() if line.startswith("|") and links[-1] in line]
    assert [part for part in (*links, f"`{command}`") if part not in row] == []


def test_every_folder_is_a_language() -> None:
    folders = {path.name for path in (ROOT / "tests/clients").iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == {language.name for language in LANGUAGES}
