"""A small bundle of each format that servers promise to read, of a model that knows two dozen sentences by heart.

python -m tests.bundle_formats adds that of today's format, which is to be done when `dragoman.bundle.FORMAT` is raised.
"""

import shutil
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from dragoman.bundle import FORMAT

DATA = Path(__file__).parent / "data"
FOLDER = DATA / "bundles"
PAIRS = "pairs.tsv"  # beside the files of a bundle: all that its model knows
_KNOWN = 24
_NOTE = "a few sentences by heart"
_MODEL = "--decoder=ssru --vocabulary-size=350 --d-model=32 --heads=2 --d-ff=64 --encoder-layers=1 --decoder-layers=2"
_TRAINING = (
    "--dropout=0 --label-smoothing=0 --steps=300 --warmup-steps=10 --decay-steps=100 --save-steps=100 "
    "--evaluate-steps=100 --average=1 --rate=0.01 --adam-rate=0.01 --device=cpu"
)


def folder_of(version: int) -> Path:
    """Give the bundle of a format; its name is that of the folder."""
    return FOLDER / f"format-{version}"


def _dragoman(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "dragoman.cli", *arguments], check=True)


def main() -> int:
    """Write the bundle of today's format, once: it stays as this format was first written."""
    folder = folder_of(FORMAT)
    if folder.exists():
        print(f"{folder} is there: a format is written once", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as run, (DATA / "en-de.tsv").open(encoding="utf-8") as corpus:
        pairs = Path(run, PAIRS)
        pairs.write_text("".join(islice(corpus, _KNOWN)), encoding="utf-8")
        languages = ("--source-language=en", "--target-language=de")
        data = (f"--train={pairs}", f"--dev={pairs}", f"--out={run}/run")
        _dragoman("train", *data, *languages, *_MODEL.split(), *_TRAINING.split())
        _dragoman("export", f"{run}/run/checkpoint", f"--out={folder}", f"--name={folder.name}", f"--note={_NOTE}")
        shutil.copyfile(pairs, folder / PAIRS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
