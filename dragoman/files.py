"""Files of the user: only regular files are read, since a device or pipe may never end; files are written whole."""

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
    """The properties of a file that change when the file is written."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, stream: BufferedReader) -> "FileState":
        """Read the state of an open file."""
        status = os.fstat(stream.fileno())
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def has_content_of(self, other: "FileState") -> bool:
        """Tell whether both states have the same content; a new link to the file changes only its other properties."""
        return self._replace(changed_ns=other.changed_ns) == other


def read_regular(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        OSError: the file cannot be read, or is not a regular file; names the file.
    """
    with open_regular(path) as stream:
        return stream.read()


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a file to read its bytes; raises as `read_regular` does."""
    # Opening a pipe without O_NONBLOCK would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    with open(descriptor, "rb") as stream:
        yield stream


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: write a temporary file beside it, and rename that; an old file's mode stays.

    Raises:
        OSError: the file cannot be written, or the path is not a regular file; names the file.
    """
    path = path.resolve()  # write to the target of a link, do not replace the link
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as stream:
            if path.exists():  # which may be readable for its owner only
                beside.chmod(stat.S_IMODE(path.stat().st_mode))
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())  # else the file could be empty after a power failure
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        beside.unlink(missing_ok=True)
