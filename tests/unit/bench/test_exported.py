from pathlib import Path

import pytest

from bench.exported import exported
from dragoman.errors import BundleError


def test_an_export_that_fails_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BundleError, match=r"failed with exit code 2: dragoman export: .*none: no such folder"):
        exported(tmp_path / "none", "fp16", tmp_path)
    assert "no such folder" in capfd.readouterr().err


def test_a_bundle_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "bundle-fp16").mkdir()
    assert exported(tmp_path / "none", "fp16", tmp_path) == tmp_path / "bundle-fp16"
