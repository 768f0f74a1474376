"""What tests make or fetch, kept between runs and shared by test processes; models under a hash of what makes them."""

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "test-models"
_ROOMS = ("model", "export")
# The engine is not among them: it decodes the same tokens whatever its code, which other tests hold.
_FILES = (
    "dragoman/bundle.py",
    "dragoman/framing.py",
    "dragoman/language.py",
    "dragoman/language_marks.py",
    "dragoman/quality.py",
    "dragoman/scripts.py",
    "dragoman/shortlist.py",
    "dragoman/tokenizer.py",
    "dragoman/vocabulary.py",
    "dragoman/word_starts.py",
    "service/runtime/onnx_file.py",
    "service/runtime/saturation.py",
    "service/runtime/sessions.py",
    "service/runtime/weights.py",
    "service/text/alignment.py",
    "tests/data/en-de.tsv",
    "tests/default_model.py",
    "tests/hugging_face.py",
    "tests/hugging_face_files.py",
    "tests/imported.py",
    "tests/marian_bin.py",
    "tests/marian_npz.py",
    "tests/synthetic.py",
    "tests/synthetic_model.py",
    "tests/unit/export/conftest.py",
)
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


def deciding() -> list[Path]:
    """List the code and the data that decide what comes out; a test holds them against the imports."""
    return [file for room in _ROOMS for file in sorted((ROOT / room).rglob("*.py"))] + [ROOT / name for name in _FILES]


@cache
def _maker() -> str:
    """Hash of the code, the data and the versions that decide what comes out."""
    made_of = hashlib.sha256()
    for file in deciding():
        made_of.update(str(file.relative_to(ROOT)).encode())
        made_of.update(file.read_bytes())
    made_of.update(" ".join(map(version, _PACKAGES)).encode())
    return made_of.hexdigest()
