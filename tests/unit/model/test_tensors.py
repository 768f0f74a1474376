import os
from pathlib import Path

import pytest
import torch

from dragoman.errors import DataError
from model.tensors import read_tensors, write_tensors


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_what_is_written_has_the_mode_of_other_files(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_tensors({"a": torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T}, tmp_path / "a.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "a.safetensors").stat().st_mode & 0o777 == mode
    assert read_tensors(tmp_path / "a.safetensors")["a"].tolist() == [[1, 3], [2, 4]]


def test_what_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^{tmp_path}: cannot write: "):
        write_tensors({}, tmp_path)
    with pytest.raises(DataError, match="none: cannot read: No such file"):
        read_tensors(tmp_path / "none")
    (tmp_path / "damaged").write_bytes(b"half")
    with pytest.raises(DataError, match="damaged: cannot read: Error while deserializing"):
        read_tensors(tmp_path / "damaged")
