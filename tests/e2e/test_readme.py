"""The Python of the README, run as it is given, against a real server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
ADDRESS = "127.0.0.1:50051"
# A block of Python, and where the README says what it prints, that.
PROGRAMS = re.findall(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", README, flags=re.DOTALL)


def test_there_is_python_and_what_it_prints() -> None:
    assert len(PROGRAMS) == README.count("```python") >= 4
    assert any(output for _, output in PROGRAMS)


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_it_runs_and_prints_what_is_said(program: str, output: str, server) -> None:
    assert ADDRESS in program
    done = subprocess.run(
        [sys.executable, "-c", program.replace(ADDRESS, server.address)],
        cwd=server.directory,
        env={name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert output in ("", done.stdout)
