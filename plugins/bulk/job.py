"""A job and its output folder: one job, one process at a time; each part is complete or absent."""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dragoman.errors import DataError
from dragoman.files import write_whole
from dragoman.invalid import describe

# Programs that read the folder skip names that begin with an underscore.
MANIFEST: Final = "_job.json"
COMPLETE: Final = "_SUCCESS"
_LOCK: Final = "_lock"
_UNFINISHED: Final = ".*.part"


class InputFile(BaseModel):
    """An input file, identified by its content and name, not by its folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    sha256: str


class Job(BaseModel):
    """All values that determine the content of the output.

    Attributes:
        dragoman: the version of this program.
        files: the input files, in their order.
        id_column: see `Columns`.
        text_column: see `Columns`.
        part_rows: the largest number of rows of a part.
        model: the identity of the model.
        settings: the settings that change translations; empty if a server has them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: Literal[1] = 1
    dragoman: str
    files: tuple[InputFile, ...]
    id_column: str
    text_column: str
    part_rows: int
    model: Mapping[str, str]
    settings: Mapping[str, str]


@contextmanager
def begun(out: Path, job: Job) -> Iterator[None]:
    """Begin or continue a job in a folder, during the block.

    Raises:
        DataError: the folder holds another job or other files, or another process works in it.
        OSError: the folder is not writable.
    """
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: must be a folder")
    out.mkdir(parents=True, exist_ok=True)
    manifest = out / MANIFEST
    if not manifest.exists() and not _is_unused(out):
        raise DataError(f"{out}: must be an empty folder, or hold a job of dragoman bulk")
    with (out / _LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{out}: another dragoman bulk works here") from None
        there = _read(manifest) if manifest.exists() else None
        if there is not None and not _is_unused(out, MANIFEST):
            _compare(out, there, job)
        else:
            write_whole(manifest, job.model_dump_json(indent=2).encode())
        for unfinished in out.glob(_UNFINISHED):
            unfinished.unlink(missing_ok=True)
        yield


def _is_unused(out: Path, *begun: str) -> bool:
    """Tell whether a folder is empty, except for these files and remains of a process that was killed."""
    names = {path.name for path in out.iterdir()} - {*begun}
    return not names or (_LOCK in names and all(fnmatch(name, _UNFINISHED) for name in names - {_LOCK}))


def complete(out: Path) -> None:
    """Mark the job as complete: all parts are there."""
    write_whole(out / COMPLETE, b"")


def _read(manifest: Path) -> Job:
    try:
        return Job.model_validate_json(manifest.read_bytes())
    except ValidationError as error:
        raise DataError(f"{manifest}: {describe(error)}") from error


def _compare(out: Path, begun: Job, now: Job) -> None:
    """Refuse to mix two jobs; the error names the first difference."""
    for field in Job.model_fields:
        there, here = getattr(begun, field), getattr(now, field)
        if there != here:
            raise DataError(
                f"{out}: holds a job with other {field}: {_difference(there, here)}; a new job needs an empty folder"
            )


def _difference(there: object, here: object) -> str:
    """Show two different values; of mappings, only the items that differ."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
        return "; ".join(f"{name} {_difference(there.get(name), here.get(name))}" for name in names)
    return f"{_shown(there)} there, {_shown(here)} now"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{file.name} ({file.sha256[:12]})" for file in value)
    return "none" if value in (None, "", ()) else str(value)
