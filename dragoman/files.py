"""Files that a user names, read only where they are regular: reading a device or a pipe need not end."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        OSError: it cannot be read, or is no regular file; names the file.
    """
    # Opening a pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        return stream.read()
