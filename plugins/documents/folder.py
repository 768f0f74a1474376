"""A folder in which several servers keep translated documents, so that each answers for all of them.

A document is a file, whose first line says in JSON what it is; behind it comes its translation.
"""

import json
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from service.settings import SettingsError

BEAT_S: Final = 20.0  # how often a server says of a document that it is still being translated
_SILENT_S: Final = 120.0  # since then its server has ended, or its clock is wrong
NAME_BYTES: Final = 24  # of randomness, so that nobody guesses the name of another's document
_NAME: Final = re.compile(rf"[0-9a-f]{{{2 * NAME_BYTES}}}")
_MADE: Final = ".dragoman-"  # how the name begins of a file that is being written


class Entry(NamedTuple):
    """What a file says of its document.

    Attributes:
        protocol: by what it came.
        client: who sent it.
        file_name: as the client calls it.
        key: a second secret.
        is_done: whether it is translated, or has failed.
        error: why there is no translation, as the server writes it; "": there is one.
    """

    protocol: str
    client: str
    file_name: str
    key: str
    is_done: bool = False
    error: str = ""


class SharedFolder:
    """The folder; its methods wait for the disk.

    Args:
        path: of the folder.

    Raises:
        SettingsError: it is none in which files can be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not (path.is_dir() and os.access(path, os.W_OK | os.X_OK)):
            raise SettingsError(f"DRAGOMAN_DOCUMENTS (--documents): {path}: no folder, or none that can be written to")

    def announce(self, name: str, entry: Entry) -> None:
        """Say that a document is being translated; nothing happens where it is done already."""
        made = self._made(entry, b"")
        try:
            with suppress(FileExistsError):
                os.link(made, self._path / name)
        finally:
            made.unlink()

    def keep(self, name: str, entry: Entry, content: bytes) -> None:
        """Keep a document that is done."""
        self._made(entry, content).rename(self._path / name)

    def touch(self, name: str) -> None:
        """Say that a document is still being translated."""
        with suppress(FileNotFoundError):
            os.utime(self._path / name)

    def read(self, name: str) -> tuple[Entry, bytes] | None:
        """Give a document as far as it is translated; None where there is none, or its server has ended."""
        if not _NAME.fullmatch(name):
            return None
        try:
            with (self._path / name).open("rb") as file:
                silent_s = time.time() - os.fstat(file.fileno()).st_mtime
                entry = Entry(**json.loads(file.readline()))
                return (entry, file.read()) if entry.is_done or silent_s < _SILENT_S else None
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Keep a document no longer."""
        (self._path / name).unlink(missing_ok=True)

    def sweep(self, keep_s: float) -> set[str]:
        """Remove what nobody has touched for so long, of all servers; give the names of the others.

        What no server wrote stays.
        """
        names = set()
        for file in self._path.iterdir():
            if not ((_NAME.fullmatch(file.name) or file.name.startswith(_MADE)) and file.is_file()):
                continue
            with suppress(FileNotFoundError):  # another server was faster
                if time.time() - file.stat().st_mtime > keep_s:
                    file.unlink()
                else:
                    names.add(file.name)
        return names

    def _made(self, entry: Entry, content: bytes) -> Path:
        """Write a file that has no name yet, which this server's user alone can read."""
        descriptor, path = tempfile.mkstemp(prefix=_MADE, dir=self._path)
        try:
            with open(descriptor, "wb") as file:
                file.write(json.dumps(entry._asdict()).encode() + b"\n" + content)
        except BaseException:
            os.unlink(path)
            raise
        return Path(path)
