"""The input files: the given files, and the files in given folders."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.errors import DataError
from plugins.bulk.formats import SUFFIXES


def listed(inputs: Sequence[Path], out: Path) -> list[Path]:
    """List the files in the order in which their rows are numbered.

    Args:
        inputs: files, and folders, whose files and subfolders are taken in the order of their names, without files of
            other formats and names that begin with "." or "_".
        out: the output folder.

    Raises:
        DataError: there are no files, or the output would become a part of the input.
        OSError: a file or folder does not exist.
    """
    files = [file.resolve() for path in inputs for file in _files(path, out)]
    if not files:
        raise DataError(f"{', '.join(map(str, inputs))}: there is no file that ends with {', '.join(SUFFIXES)}")
    return files


def _files(path: Path, out: Path) -> Iterator[Path]:
    path.stat()  # raises an error that names a missing path
    if not path.is_dir():
        yield path
        return
    if out.resolve().is_relative_to(path.resolve()):
        raise DataError(f"{out}: must not be inside {path}, which is read")
    for file in sorted(path.rglob("*")):
        hidden = any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        if file.suffix.lower() in SUFFIXES and not hidden and file.is_file():
            yield file
