"""`python -m dragoman_server`: the server's modules as programs, in any folder."""

import subprocess
import sys
from pathlib import Path

import pytest


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman_server", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_a_module_runs_with_its_arguments_beside_a_package_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").write_text("raise SystemExit('a package of the user was imported')\n")
    done = run(tmp_path, "bench", "cold-start", "--requests", "1", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: dragoman bench cold-start")


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ([], "the following arguments are required: module"),
        (["bench.nothing"], "argument module: there is no module 'bench.nothing'"),
        (["nothing.at.all"], "argument module: there is no module 'nothing.at.all'"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], wrong: str, tmp_path: Path) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"python -m dragoman_server: {wrong}")
    assert done.stderr.count("\n") == 1
