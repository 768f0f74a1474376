"""What tests make or fetch, kept between runs and shared by test processes; models under a hash of what makes them."""

import ast
import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "test-models"
_MAKERS = ("tests/default_model.py", "tests/imported.py", "tests/synthetic_model.py", "tests/unit/export/conftest.py")
_DATA = ("tests/data/en-de.tsv",)
_OURS = ("dragoman", "service", "plugins", "model", "export", "tests")
# What the makers import, and decides nothing that comes out.
INNOCENT = {
    # Messages, and how a file is put in its place.
    "dragoman/errors.py",
    "dragoman/files.py",
    "dragoman/invalid.py",
    # Decodes the same tokens whatever its code, which other tests hold.
    "plugins/offline/engine.py",
    "service/decode.py",
    "service/options.py",
    "service/text/translator.py",
    "tests/made_once.py",
}
_PACKAGES = ("torch", "onnx", "onnxruntime", "sentencepiece", "numpy")


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Give a folder, made if it is not there.

    Args:
        name: with everything that sets it apart from others of the same code.
        make: fills an empty folder.
    """
    folder = FOLDER / hashlib.sha256(f"{_maker()} {name}".encode()).hexdigest()[:16]
    filled_once(folder, make)
    return folder


def filled_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder if it is not there; it appears when it is complete.

    Args:
        folder: that is wanted.
        fill: fills an empty folder of another name.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_name(f"{folder.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            fill(unfinished)
            unfinished.rename(folder)


@cache
def reached() -> set[str]:
    """List the code of ours that the makers import, and what that imports; nothing behind what is innocent."""
    found: set[str] = set()
    ahead = list(_MAKERS)
    while ahead:
        file = ahead.pop()
        if file not in found:
            found.add(file)
            ahead += [] if file in INNOCENT else _imports(ROOT / file)
    return found


def deciding() -> list[str]:
    """List the code and the data that decide what comes out."""
    return sorted({*reached(), *_DATA} - INNOCENT)


def _imports(file: Path) -> Iterator[str]:
    """List the files of ours that a file imports, those of packages left out."""
    for node in _statements(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            path = f"{name.replace('.', '/')}.py"
            if name.partition(".")[0] in _OURS and (ROOT / path).is_file():
                yield path


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """List the nodes of a tree that hold statements, and the statements; most nodes are parts of expressions."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            ahead += getattr(node, field, ())


@cache
def _maker() -> str:
    """Hash of the code, the data and the versions that decide what comes out."""
    made_of = hashlib.sha256()
    for file in deciding():
        made_of.update(file.encode())
        made_of.update((ROOT / file).read_bytes())
    made_of.update(" ".join(map(version, _PACKAGES)).encode())
    return made_of.hexdigest()
