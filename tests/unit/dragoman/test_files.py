import os
from pathlib import Path

import pytest

from dragoman.files import read_regular


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
