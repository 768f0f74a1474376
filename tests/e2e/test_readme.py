"""The Python of the README and of docs/getting-started.md, run as it is given, against a real server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/getting-started.md")}
ADDRESS = "127.0.0.1:50051"
# A block of Python, and what the page says that it prints.
PROGRAMS = [
    program
    for page in PAGES.values()
    for program in re.findall(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", page, flags=re.DOTALL)
]


@pytest.mark.parametrize(("name", "least"), [("README.md", 1), ("docs/getting-started.md", 4)])
def test_a_page_has_programs(name: str, least: int) -> None:
    assert PAGES[name].count("```python") >= least


def test_every_program_says_what_it_prints() -> None:
    assert len(PROGRAMS) == sum(page.count("```python") for page in PAGES.values())
    assert [program for program, output in PROGRAMS if not output] == []


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_it_runs_and_prints_what_is_said(program: str, output: str, default_models: ServerProcess) -> None:
    assert ADDRESS in program
    done = subprocess.run(
        [sys.executable, "-c", program.replace(ADDRESS, default_models.address)],
        cwd=default_models.directory,
        env={name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == output
