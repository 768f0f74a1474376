"""`make proto-check` finds what breaks clients, and what is not in the style of the contract."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([ROOT / "tests/contract/check.sh", folder], capture_output=True, text=True)
    if "skipped" in done.stdout:
        pytest.skip(done.stdout.strip())
    return done


def test_the_contract_is_in_style_and_breaks_nobody() -> None:
    done = check(ROOT / "proto")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("now", "then", "finding"),
    [
        ("bool all_or_nothing = 9;", "bool all_or_nothing = 10;", 'Previously present field "9"'),
        ("string reason = 2;", "bytes reason = 2;", "changed type"),
        ("service Translation {", "service Translations {", 'Previously present service "Translation"'),
        ("string next_page_token = 2;", "string nextPageToken = 2;", "lower_snake_case"),
        ("// Some models of one server.\n", "", "non-empty comment"),
    ],
)
def test_a_change_that_hurts_is_found(tmp_path: Path, now: str, then: str, finding: str) -> None:
    folder = Path(shutil.copytree(ROOT / "proto", tmp_path / "proto"))
    file = folder / "dragoman/v1/translation.proto"
    text = file.read_text(encoding="utf-8")
    assert now in text
    file.write_text(text.replace(now, then, 1), encoding="utf-8")
    done = check(folder)
    assert done.returncode != 0
    assert finding in done.stdout + done.stderr
