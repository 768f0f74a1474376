from pathlib import Path

import pytest

from dragoman.bundle import sha256
from dragoman.errors import DataError
from model.store import store


def write(file: Path, *lines: str) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def test_pairs_with_their_tags(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.v2.tsv", "the\tder", "öffnet 😀\t你好")
    tagged = write(tmp_path / "tagged.tsv", "one\teins\tui-a", "two\tzwei", "three\tdrei\tdoc", "four\tvier\tui-a")
    opened = store([plain, tagged], tmp_path / "corpus", filters=False)
    pairs = [opened.pair(row) for row in range(len(opened))]
    expected = [("the", "der"), ("öffnet 😀", "你好"), ("one", "eins"), ("three", "drei"), ("four", "vier")]
    assert pairs == expected
    assert [opened.record["tags"][tag] for tag in opened.tag_of] == ["plain", "plain", "ui-a", "doc", "ui-a"]
    assert opened.record["files"] == [
        {"file": "plain.v2.tsv", "sha256": sha256(plain), "pairs": 2, "broken_lines": 0},
        {"file": "tagged.tsv", "sha256": sha256(tagged), "pairs": 3, "broken_lines": 1},
    ]


def test_what_is_filtered_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.tsv", "good\tgut", "page 48\tSeite 84", "page 12345\tSeite 54321", "a\tb")
    opened = store([file], tmp_path / "corpus", filters=True)
    assert opened.record["files"][0] | {"sha256": ""} == {
        "file": "a.tsv",
        "sha256": "",
        "pairs": 2,
        "broken_lines": 0,
        "filtered": {"numbers": 2},
    }
    assert capsys.readouterr().out == f"{file}: 2 pairs filtered: 2 for numbers\n"
    with pytest.raises(DataError, match="no pair passes --filter"):
        store([write(tmp_path / "b.tsv", "page 48\tSeite 84")], tmp_path / "other", filters=True)
    assert not (tmp_path / "other").exists()


def test_what_is_there_is_taken_if_the_files_are_the_same(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "good\tgut")
    store([file], tmp_path / "corpus", filters=False)
    before = (tmp_path / "corpus" / "text.tsv").stat()
    assert len(store([file], tmp_path / "corpus", filters=False)) == 1
    assert (tmp_path / "corpus" / "text.tsv").stat() == before
    other = write(tmp_path / "b.tsv", "bad\tschlecht")
    with pytest.raises(DataError, match=r"b\.tsv: is not what the run began with"):
        store([other], tmp_path / "corpus", filters=False)
    with pytest.raises(DataError, match=r"the run began with a\.tsv; give the same --train"):
        store([file, file], tmp_path / "corpus", filters=False)
    write(file, "good\tguter")
    with pytest.raises(DataError, match=r"a\.tsv: is not what"):
        store([file], tmp_path / "corpus", filters=False)
