from pathlib import Path

import pytest

from dragoman.errors import DataError
from plugins.bulk.inputs import listed


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_files_of_folders_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    make(
        tmp_path,
        "in/b.jsonl",
        "in/a/c.csv",
        "in/d.txt",
        "in/_job.jsonl",
        "in/.e.csv",
        "in/.f/g.csv",
        "z.tsv",
        "odd.txt",
    )
    found = listed([tmp_path / "z.tsv", tmp_path / "in", tmp_path / "odd.txt"], tmp_path / "out")
    assert [str(file.relative_to(tmp_path)) for file in found] == ["z.tsv", "in/a/c.csv", "in/b.jsonl", "odd.txt"]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        listed([tmp_path / "in.csv"], tmp_path / "out")
    assert error.value.filename == str(tmp_path / "in.csv")


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file that ends with \.csv"):
        listed([tmp_path], tmp_path.parent)


def test_the_output_cannot_become_input(tmp_path: Path) -> None:
    make(tmp_path, "a.csv")
    with pytest.raises(DataError, match=rf"{tmp_path / 'out'}: must not be inside {tmp_path}, which is read"):
        listed([tmp_path], tmp_path / "out")
