"""A check that a file is unchanged since it was read."""

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
        """Read the identity of a file; raises OSError if the file does not exist."""
        status = file.stat()
        return cls(file.name, status.st_size, status.st_mtime_ns, status.st_ino)
