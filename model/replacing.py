"""A folder that appears complete or not at all, in place of an older one."""

import os
import shutil
from pathlib import Path


class replacing:  # noqa: N801 - reads as a verb in a with statement
    """A folder beside the target; it takes the target's name when the block ends without an error."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._partial = target.with_name(target.name + ".partial")

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
