"""The page that lists every file with the first line of its docstring."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("dragoman", "dragoman_server", "service", "model", "export", "bench")


def page() -> str:
    """Write the page."""
    lines = [
        "# File by file",
        "",
        "Made by `make docs` from the docstrings. [structure.md](structure.md) tells how they play together.",
    ]
    for room in ROOMS:
        for folder in sorted({file.parent for file in _files(room)}):
            lines += ["", f"## {folder.relative_to(ROOT)}/", "", _summary(folder / "__init__.py"), ""]
            lines += [
                f"- `{file.name}`: {_summary(file)}"
                for file in _files(room)
                if file.parent == folder and file.name != "__init__.py"
            ]
    return "\n".join(lines) + "\n"


def _files(room: str) -> Iterator[Path]:
    files = sorted((ROOT / room).rglob("*.py"))
    return (file for file in files if "v1" not in file.parts and not file.stem.endswith("_pb2"))


def _summary(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert docstring, f"{file} has no docstring"
    return docstring.partition("\n\n")[0].replace("\n", " ")
