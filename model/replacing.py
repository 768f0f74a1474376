"""A folder that appears complete or not at all, in place of an older one."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from dragoman.errors import DataError


class replacing:  # noqa: N801 - reads as a verb in a with statement
    """A folder beside the target; it takes the target's name when the block ends without an error."""

    def __init__(self, target: Path) -> None:
        self._target = target.resolve()
        self._partial = self._target.with_name(self._target.name + ".partial")

    def __enter__(self) -> Path:
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir(parents=True)
        return self._partial

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self._partial, ignore_errors=True)
            return
        old = self._target.with_name(self._target.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if self._target.exists():
            os.rename(self._target, old)
        os.rename(self._partial, self._target)
        shutil.rmtree(old, ignore_errors=True)


def check_target(target: Path, mark: str, sources: Iterable[Path]) -> None:
    """Refuse a folder that a command would replace and has not made.

    Args:
        target: which is to be replaced.
        mark: a file that every folder has which the command made.
        sources: what is read; those that do not exist are passed over.

    Raises:
        DataError: the target holds something else, or a source, or the folder that we are in.
    """
    place = target.resolve()
    for source in (Path.cwd(), *sources):
        if source.exists() and source.resolve().is_relative_to(place):
            raise DataError(f"{target}: would be replaced, with {source} in it; name another folder")
    if place.exists() and not (place / mark).is_file() and not (place.is_dir() and not any(place.iterdir())):
        raise DataError(f"{target}: would be replaced, but holds other things (no {mark}); name another folder")
