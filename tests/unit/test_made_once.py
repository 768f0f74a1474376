"""Models of tests are made again whenever a file changes that decides them: what such a file imports is such a file."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.made_once import ROOT, deciding

OURS = ("dragoman", "service", "plugins", "model", "export", "tests")
# What is imported by a file that decides, and decides nothing itself.
INNOCENT = {
    # Commands, and messages.
    "dragoman/arguments.py",
    "dragoman/errors.py",
    "dragoman/exit_codes.py",
    "dragoman/files.py",
    "dragoman/invalid.py",
    "plugins/library/fetching.py",
    "plugins/offline/texts.py",
    # Calibrates: no model of tests is.
    "plugins/quality/counts.py",
    "plugins/quality/estimate.py",
    # Decodes the same tokens whatever its code.
    "service/decode.py",
    "service/engine/offline.py",
    "service/options.py",
    "service/text/translator.py",
    "tests/made_once.py",
}


def imported(file: Path) -> Iterator[str]:
    """List the files of ours that a file imports, those of packages left out."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            path = f"{name.replace('.', '/')}.py"
            if name.partition(".")[0] in OURS and (ROOT / path).is_file():
                yield path


def used() -> set[str]:
    return {path for file in deciding() if file.suffix == ".py" for path in imported(file)}


def test_what_a_deciding_file_imports_decides_too() -> None:
    known = {file.relative_to(ROOT).as_posix() for file in deciding()}
    assert used() - known == INNOCENT


def test_a_listed_file_is_there_and_decides_something() -> None:
    assert [file for file in deciding() if not file.is_file()] == []
    listed = {file.relative_to(ROOT).as_posix() for file in deciding() if file.suffix == ".py"}
    assert {name for name in listed - used() if name.startswith(("dragoman/", "service/"))} == set()
