"""Whether a file is still the one that was read."""

from pathlib import Path
from typing import NamedTuple


class FileIdentity(NamedTuple):
    """The properties of a file that change whenever it is written or replaced."""

    name: str
    size_bytes: int
    modified_ns: int
    inode: int

    @classmethod
    def of(cls, file: Path) -> "FileIdentity":
        """Look at a file; raises OSError where there is none."""
        status = file.stat()
        return cls(file.name, status.st_size, status.st_mtime_ns, status.st_ino)
