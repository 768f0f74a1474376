"""A folder in which several servers keep translated documents, so that each server can answer for all of them.

A document is a file: its first line is its entry in JSON, followed by the translation.
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

BEAT_S: Final = 20.0  # how often a server marks a running translation as alive
_SILENT_S: Final = 120.0  # after this time, the server has ended, or its clock is wrong
NAME_BYTES: Final = 24  # random bytes: nobody can guess the name of another client's document
_NAME: Final = re.compile(rf"[0-9a-f]{{{2 * NAME_BYTES}}}")
_MADE: Final = ".dragoman-"  # prefix of the names of unfinished files


class Entry(NamedTuple):
    """The entry of a document in its file.

    Attributes:
        protocol: the protocol of the upload.
        client: the client that sent the document.
        file_name: the client's name of the file.
        key: a second secret.
        is_done: whether the document is translated, or has failed.
        error: why there is no translation, in the server's wire form; "": there is one.
    """

    protocol: str
    client: str
    file_name: str
    key: str
    is_done: bool = False
    error: str = ""


class SharedFolder:
    """The folder; its methods block on disk access.

    Raises:
        SettingsError: the path is no folder, or not writable.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if not (path.is_dir() and os.access(path, os.W_OK | os.X_OK)):
            raise SettingsError(f"DRAGOMAN_DOCUMENTS (--documents): {path}: no folder, or none that can be written to")

    def announce(self, name: str, entry: Entry) -> None:
        """Record that a document is being translated; no effect if it is already done."""
        made = self._made(entry, b"")
        try:
            with suppress(FileExistsError):
                os.link(made, self._path / name)
        finally:
            made.unlink()

    def keep(self, name: str, entry: Entry, content: bytes) -> None:
        """Store a document that is done."""
        self._made(entry, content).rename(self._path / name)

    def touch(self, name: str) -> None:
        """Mark a document as still being translated."""
        with suppress(FileNotFoundError):
            os.utime(self._path / name)

    def read(self, name: str) -> tuple[Entry, bytes] | None:
        """Read a document, done or not; None if it does not exist, or its server has ended."""
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
        """Remove a document."""
        (self._path / name).unlink(missing_ok=True)

    def sweep(self, keep_s: float) -> set[str]:
        """Remove documents of all servers that were not touched for `keep_s`; give the names of the others.

        Files that no server wrote stay.
        """
        names = set()
        for file in self._path.iterdir():
            if not ((_NAME.fullmatch(file.name) or file.name.startswith(_MADE)) and file.is_file()):
                continue
            with suppress(FileNotFoundError):  # another server removed the file first
                if time.time() - file.stat().st_mtime > keep_s:
                    file.unlink()
                else:
                    names.add(file.name)
        return names

    def _made(self, entry: Entry, content: bytes) -> Path:
        """Write a file with a temporary name, readable only by this server's user."""
        descriptor, path = tempfile.mkstemp(prefix=_MADE, dir=self._path)
        try:
            with open(descriptor, "wb") as file:
                file.write(json.dumps(entry._asdict()).encode() + b"\n" + content)
        except BaseException:
            os.unlink(path)
            raise
        return Path(path)
