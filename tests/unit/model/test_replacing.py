from pathlib import Path

import pytest

from dragoman.errors import DataError
from model.replacing import check_target, replacing


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


def test_only_what_the_command_made_or_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "bundle.json").touch()
    for name in ("new", "empty", "made"):
        check_target(tmp_path / name, "bundle.json", [tmp_path / "no-such-file"])
    (tmp_path / "file").touch()
    for name in ("made/..", "file"):
        with pytest.raises(DataError, match=f"{name}: would be replaced, but holds other things"):
            check_target(tmp_path / name, "bundle.json", [])


def test_neither_what_is_read_nor_the_working_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bundle.json").touch()
    data = tmp_path / "data.tsv"
    data.touch()
    for source in (tmp_path, data):
        with pytest.raises(DataError, match=f"{tmp_path}: would be replaced, with {source} in it; name another folder"):
            check_target(tmp_path, "bundle.json", [source])
    monkeypatch.chdir(tmp_path)
    for target in (".", "..", "/"):
        with pytest.raises(DataError, match="would be replaced, with"):
            check_target(Path(target), "bundle.json", [])


def test_a_link_stays_where_its_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with replacing(tmp_path / "link") as partial:
        (partial / "new.txt").touch()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "new.txt").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link"]
