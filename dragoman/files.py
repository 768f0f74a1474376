"""Files that a user names: read only where they are regular, since a device or a pipe need not end; written whole."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """What of a file changes whenever it is written."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, stream: BufferedReader) -> "FileState":
        """Look at an open file."""
        status = os.fstat(stream.fileno())
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def has_content_of(self, other: "FileState") -> bool:
        """Tell whether the file has not been written to between the two; another link to it changes its state, too."""
        return self._replace(changed_ns=other.changed_ns) == other


def read_regular(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        OSError: it cannot be read, or is no regular file; names the file.
    """
    with open_regular(path) as stream:
        return stream.read()


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read its bytes; raises as `read_regular` does."""
    # Opening a pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with open(descriptor, "rb") as stream:
        yield stream


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside its place, and then in it.

    Raises:
        OSError: it cannot be written, or what is there is no regular file; names the file.
    """
    path = path.resolve()  # the file that a link means, not the link
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # else a loss of power could leave an empty file in the place
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        beside.unlink(missing_ok=True)
