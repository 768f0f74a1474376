"""docs/clients.md shows the very files that are tested, and how each is built and run."""

import re
from pathlib import Path

import pytest

from tests.clients.languages import LANGUAGES, Language

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w+\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
def test_a_client_stands_in_the_page_as_it_is_tested(language: Language) -> None:
    files = [language.folder / name for name in ("install.sh", "build.sh", language.file)]
    texts = [file.read_text(encoding="utf-8") for file in files if file.exists()]
    assert len(texts) >= 2
    assert [text for text in texts if text not in BLOCKS] == []
    command = language.run.replace("ADDRESS", "127.0.0.1:50051")
    assert [block for block in BLOCKS if block.strip().endswith(command)], command


def test_every_folder_is_a_language() -> None:
    folders = {path.name for path in (ROOT / "tests/clients").iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == {language.name for language in LANGUAGES}
