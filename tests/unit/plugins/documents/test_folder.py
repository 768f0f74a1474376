"""The folder of servers that share their documents."""

import os
import time
from pathlib import Path

import pytest

from plugins.documents.folder import Entry, SharedFolder
from service.settings import SettingsError

ENTRY = Entry("deepl", "alice", "a.txt", "secret")
DONE = ENTRY._replace(is_done=True)
NAME = "ab" * 24


@pytest.fixture
def folder(tmp_path: Path) -> SharedFolder:
    return SharedFolder(tmp_path)


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def test_a_document_is_there_for_every_server(folder: SharedFolder, tmp_path: Path) -> None:
    assert folder.read(NAME) is None
    folder.announce(NAME, ENTRY)
    assert SharedFolder(tmp_path).read(NAME) == (ENTRY, b"")
    folder.keep(NAME, DONE, b"Tom\n\0")
    assert SharedFolder(tmp_path).read(NAME) == (DONE, b"Tom\n\0")
    SharedFolder(tmp_path).remove(NAME)
    assert folder.read(NAME) is None
    folder.remove(NAME)
    folder.touch(NAME)
    assert not any(tmp_path.iterdir())


def test_a_document_that_is_done_stays_so(folder: SharedFolder, tmp_path: Path) -> None:
    folder.keep(NAME, DONE, b"Tom")
    folder.announce(NAME, ENTRY)
    assert folder.read(NAME) == (DONE, b"Tom")
    assert [file.name for file in tmp_path.iterdir()] == [NAME]


def test_the_user_of_the_server_alone_reads_it(folder: SharedFolder, tmp_path: Path) -> None:
    folder.keep(NAME, DONE, b"Tom")
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_server_that_is_silent_has_given_its_documents_up(folder: SharedFolder, tmp_path: Path) -> None:
    folder.announce(NAME, ENTRY)
    age(tmp_path / NAME, 300)
    assert folder.read(NAME) is None
    folder.touch(NAME)
    assert folder.read(NAME) == (ENTRY, b"")


def test_what_is_old_is_swept_whichever_server_wrote_it(folder: SharedFolder, tmp_path: Path) -> None:
    young = "cd" * 24
    for name in (NAME, young, ".dragoman-left"):
        (tmp_path / name).write_bytes(b"{}\n")
    age(tmp_path / NAME, 700)
    age(tmp_path / ".dragoman-left", 700)
    assert folder.sweep(600) == {young}
    assert [file.name for file in tmp_path.iterdir()] == [young]


def test_what_no_server_wrote_is_not_swept(folder: SharedFolder, tmp_path: Path) -> None:
    for name in ("letter.docx", ".profile", "2024"):
        (tmp_path / name).write_bytes(b"")
    for name in ("letters", NAME):
        (tmp_path / name).mkdir()
    files = set(tmp_path.iterdir())
    for file in files:
        age(file, 700)
    assert folder.sweep(600) == set()
    assert set(tmp_path.iterdir()) == files


@pytest.mark.parametrize("name", ["", ".", "..", "../secret", "/etc/passwd", "AB", "a.txt", "a" * 200])
def test_a_name_is_no_path(folder: SharedFolder, tmp_path: Path, name: str) -> None:
    (tmp_path.parent / "secret").write_bytes(b'{"protocol": "", "client": "", "file_name": "", "key": ""}\n')
    assert folder.read(name) is None


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"DRAGOMAN_DOCUMENTS \(--documents\): .*none: no folder, or none that"):
        SharedFolder(tmp_path / "none")
