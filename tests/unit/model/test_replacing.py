from pathlib import Path

import pytest

from model.replacing import replacing


def test_an_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for content in ("first", "second"):
        with replacing(target) as partial:
            (partial / f"{content}.txt").write_text(content)
            assert partial.parent == tmp_path
    assert [path.name for path in target.iterdir()] == ["second.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_old_folder_stays_when_the_block_raises(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "folder"
    with replacing(target) as partial:
        (partial / "old.txt").write_text("old")

    def fail() -> None:
        with replacing(target) as partial:
            (partial / "new.txt").write_text("new")
            raise error

    with pytest.raises(error):
        fail()
    assert [path.name for path in target.iterdir()] == ["old.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_a_kill_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "folder.partial").mkdir()
    (tmp_path / "folder.partial" / "half.txt").write_text("half")
    (tmp_path / "folder.old").mkdir()
    with replacing(tmp_path / "folder") as partial:
        (partial / "whole.txt").write_text("whole")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["whole.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
