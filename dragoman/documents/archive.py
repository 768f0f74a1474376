"""ZIP archives from untrusted sources: the decompressed bytes are counted, whatever the headers claim."""

import copy
import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

MAX_MEMBERS: Final = 10_000
MAX_BYTES: Final = 256 * 2**20  # of all members together
_OLE: Final = b"\xd0\xcf\x11\xe0"  # begins files that Office encrypted, or an Office before 2007 wrote
_BLOCK_BYTES: Final = 1 << 20
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError)


class Archive:
    """The members of an archive; some of them get new content.

    Attributes:
        names: the names of the members, in their order.
    """

    def __init__(self, content: bytes) -> None:
        """Read each member once.

        Args:
            content: the content of the file.

        Raises:
            ValueError: the content is no archive, or the archive is broken, encrypted or too large.
        """
        if content.startswith(_OLE):
            raise ValueError("is protected by a password, or of an old version of Office")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
            infos = self._zip.infolist()
        except _BROKEN as error:
            raise ValueError("is no ZIP archive, or a damaged one") from error
        if len(infos) > MAX_MEMBERS:
            raise ValueError(f"must have at most {MAX_MEMBERS} members, has {len(infos)}")
        self.names = [info.filename for info in infos]
        if len(set(self.names)) < len(self.names):
            raise ValueError("has two members of one name")
        left = MAX_BYTES
        for info in infos:
            left -= self._size(info, left)

    def read(self, name: str) -> bytes:
        """Give the content of a member, as read by the constructor."""
        return self._zip.read(name)

    def write(self, replaced: Mapping[str, bytes]) -> bytes:
        """Give the archive with new content for some members."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as out:
            for info in self._zip.infolist():
                content = replaced.get(info.filename)
                same = copy.copy(info)
                same.extra = b""
                out.writestr(same, self._zip.read(info) if content is None else content)
        return stream.getvalue()

    def _size(self, info: zipfile.ZipInfo, most: int) -> int:
        """Count the bytes of a member by reading it."""
        size = 0
        try:
            with self._zip.open(info) as stream:
                while block := stream.read(_BLOCK_BYTES):
                    size += len(block)
                    if size > most:
                        break
        except _BROKEN as error:
            raise ValueError(f"its member {info.filename!r:.80} cannot be read: {error}") from error
        if size > most:
            raise ValueError(f"its members must have at most {MAX_BYTES} bytes together")
        return size
