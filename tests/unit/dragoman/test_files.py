import os
from pathlib import Path

import pytest

from dragoman.files import read_regular, write_whole


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link") == b"content"


def test_a_device_is_refused() -> None:
    with pytest.raises(OSError, match="is not a regular file: '/dev/zero'"):
        read_regular(Path("/dev/zero"))


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not a regular file"):
        read_regular(tmp_path / "pipe")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        read_regular(tmp_path / "missing")
    assert caught.value.filename == str(tmp_path / "missing")


def test_a_file_is_written_over_what_was_there_and_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old and longer")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_file_that_is_written_over_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    write_whole(tmp_path / "file", b"new")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_what_is_no_regular_file_is_not_written_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is not a regular file"):
        write_whole(tmp_path / "pipe", b"new")


def test_a_file_that_cannot_be_written_leaves_nothing_and_is_named(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        write_whole(tmp_path / "missing" / "file", b"new")
    assert missing.value.filename == str(tmp_path / "missing" / "file")

    def full(self: Path, other: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []
