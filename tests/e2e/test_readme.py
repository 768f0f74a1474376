"""The Python of the README and of docs/getting-started.md, run as it is given, and the log of a real server."""

import json
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


def test_the_log_of_a_start_is_as_the_page_says(default_models: ServerProcess) -> None:
    default_models.wait_for("language detection loaded")
    lines = [line for line in map(json.loads, default_models.log) if line["event"] != "request"]  # of other tests
    [block] = re.findall(r"In a terminal .*?\n\n```\n(.*?)```", PAGES["docs/getting-started.md"], flags=re.DOTALL)
    told = [line for line in block.splitlines() if not line.startswith("try: ")]  # that is for a terminal alone
    logged = [(line["event"], sorted(line.keys() - {"event", "level", "timestamp"})) for line in lines[: len(told)]]
    events = [re.split(r" {2,}", line)[0] for line in told]
    assert [re.sub(r":\d+", "", event) for event in events] == [re.sub(r":\d+", "", event) for event, _ in logged]
    assert [re.findall(r"(\w+)=", line) for line in told] == [names for _, names in logged]
    notes = {repr(line["note"]) for line in lines if "note" in line}
    assert [note for note in notes if f"note={note}" not in block] == []
